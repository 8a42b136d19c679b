#!/usr/bin/env bash
# Obtains the pinned llama.cpp, checks it, and builds the parts that Plateau links, once per tag and
# set of flags, into a cache outside the source and build trees.
#
#   scripts/llama-cpp.sh dir           print the directory of the ready build (building it if needed)
#   scripts/llama-cpp.sh llama-bench   the same, with llama-bench built; prints the program's path
#
# PLATEAU_LLAMA_CPP_SOURCE  a llama.cpp source tree to use instead of downloading one
# PLATEAU_CACHE_DIR         the cache (default: $XDG_CACHE_HOME/plateau or ~/.cache/plateau)
set -euo pipefail

readonly TAG=v0.4.0
# What is checked is the git tree: the same for the bundle, the upstream tag and a plain directory.
readonly TREE=0424752fbbc3bb01469ec830a30f2bc035497cd4
readonly NPM_PACKAGE=node-llama-cpp@3.21.1
readonly NPM_SHA512=E3N0Ev2Va0wzydvXYFwM9Hvyo07PoWjt8T/9GMc43Cvt8YkV/NU/tYUgEMC1grTPv2o9PRjQi0G3Wb5P/awiMg==
readonly UPSTREAM=https://github.com/ggml-org/llama.cpp

root=$(cd "$(dirname "$0")/.." && pwd)
readonly root
readonly recipe="$root/cmake/llama.cpp"
cache=${PLATEAU_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/plateau}
readonly cache

say() { echo "llama.cpp: $*" >&2; }
die() { say "$*"; exit 1; }

# The build depends on the recipe, the compiler and, because of -march=native, the processor.
build_key() {
  {
    cat "$recipe/CMakeLists.txt"
    "${CXX:-c++}" --version | head -n 1
    uname -m
    grep -m1 -E '^(flags|Features)' /proc/cpuinfo || true
  } | sha256sum | cut -c1-12
}

tree_of() {  # git tree hash of the files in directory $1, whether or not it is a checkout
  local scratch
  scratch=$(mktemp -d)
  git -C "$1" rev-parse --verify -q 'HEAD^{tree}' 2>/dev/null | grep -qx "$TREE" \
    && [ -z "$(git -C "$1" status --porcelain --untracked-files=no 2>/dev/null)" ] \
    && { rm -rf "$scratch"; echo "$TREE"; return; }
  git --git-dir="$scratch/git" init -q --bare
  git --git-dir="$scratch/git" --work-tree="$1" -c core.autocrlf=false add -A -f . >/dev/null 2>&1 || true
  git --git-dir="$scratch/git" write-tree 2>/dev/null || echo unreadable
  rm -rf "$scratch"
}

from_npm() {  # $1: where to put the source
  command -v npm >/dev/null || { say "npm is not installed"; return 1; }
  local scratch
  scratch=$(mktemp -d)
  say "downloading $NPM_PACKAGE (35 MB)"
  if ! (cd "$scratch" && npm pack "$NPM_PACKAGE" --silent >/dev/null 2>npm.log); then
    say "cannot download $NPM_PACKAGE: $(grep -m1 -E 'code|error' "$scratch/npm.log" | tail -n 1)"
    rm -rf "$scratch"
    return 1
  fi
  local found
  found=$(openssl dgst -sha512 -binary "$scratch"/*.tgz | base64 -w0)
  if [ "$found" != "$NPM_SHA512" ]; then
    rm -rf "$scratch"
    die "the download of $NPM_PACKAGE is corrupted: expected sha512 ${NPM_SHA512:0:16}..., got ${found:0:16}...; run again"
  fi
  tar -xzf "$scratch"/*.tgz -C "$scratch" package/llama/gitRelease.bundle
  git -c advice.detachedHead=false clone -q "$scratch/package/llama/gitRelease.bundle" "$1" 2>/dev/null
  rm -rf "$scratch"
}

from_upstream() {
  say "cloning $UPSTREAM at $TAG"
  git -c advice.detachedHead=false clone -q --depth 1 --branch "$TAG" "$UPSTREAM" "$1" 2>/dev/null
}

get_source() {  # prints the directory of a verified source tree
  if [ -n "${PLATEAU_LLAMA_CPP_SOURCE:-}" ]; then
    [ -d "$PLATEAU_LLAMA_CPP_SOURCE" ] || die "PLATEAU_LLAMA_CPP_SOURCE is not a directory: $PLATEAU_LLAMA_CPP_SOURCE"
    local given
    given=$(tree_of "$PLATEAU_LLAMA_CPP_SOURCE")
    [ "$given" = "$TREE" ] || die "PLATEAU_LLAMA_CPP_SOURCE is not llama.cpp $TAG: expected git tree $TREE, got $given"
    (cd "$PLATEAU_LLAMA_CPP_SOURCE" && pwd)
    return
  fi
  local source="$cache/llama.cpp-$TAG-source"
  if [ ! -f "$source/.plateau-verified" ]; then
    rm -rf "$source" "$source.part"
    from_npm "$source.part" || { rm -rf "$source.part"; from_upstream "$source.part"; } \
      || die "cannot get llama.cpp $TAG: neither $NPM_PACKAGE nor $UPSTREAM can be reached; set PLATEAU_LLAMA_CPP_SOURCE to a directory that holds it"
    local got
    got=$(tree_of "$source.part")
    [ "$got" = "$TREE" ] || { rm -rf "$source.part"; die "the download is not llama.cpp $TAG: expected git tree $TREE, got $got"; }
    touch "$source.part/.plateau-verified"
    mv "$source.part" "$source"
  fi
  echo "$source"
}

build() {  # $1: target ("libs" or "tools"); prints the build directory
  local dir
  dir="$cache/llama.cpp-$TAG-$(build_key)"
  if [ ! -f "$dir/.built-$1" ]; then
    mkdir -p "$cache"
    exec 9>"$dir.lock"
    flock 9
    if [ ! -f "$dir/.built-$1" ]; then
      local source launcher=()
      source=$(get_source)
      command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
      say "building $1 of $TAG (once per machine; some minutes on two cores)"
      cmake -S "$recipe" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "${launcher[@]}" \
        -DLLAMA_CPP_SOURCE="$source" >"$dir.configure.log" 2>&1 \
        || die "configuring failed, see $dir.configure.log"
      cmake --build "$dir/build" --target "$1" >&2 || die "the build failed"
      ln -sfn "$source" "$dir/source"
      touch "$dir/.built-$1"
    fi
    flock -u 9
  fi
  echo "$dir"
}

case "${1:-}" in
  dir) build libs ;;
  llama-bench) build libs >/dev/null; echo "$(build tools)/build/llama-bench/llama-bench" ;;
  *) die "usage: scripts/llama-cpp.sh dir|llama-bench" ;;
esac
