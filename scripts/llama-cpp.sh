#!/usr/bin/env bash
# Obtains the pinned llama.cpp, checks it, and builds the parts that Plateau links, once per tag,
# recipe, compiler and processor, into a cache outside the source and build trees.
#
#   scripts/llama-cpp.sh dir           print the directory of the ready build (building it if needed)
#   scripts/llama-cpp.sh llama-bench   the same for llama-bench; prints the program's path
#
# PLATEAU_LLAMA_CPP_SOURCE  a llama.cpp source tree to use instead of downloading one
# PLATEAU_CACHE_DIR         the cache (default: $XDG_CACHE_HOME/plateau or ~/.cache/plateau)
#
# The cache holds, and heals when parts of it are deleted:
#   llama.cpp-TAG-source/      the verified source
#   llama.cpp-TAG-KEY/         source (link), recipe/, build/, .built-libs, .built-tools
set -euo pipefail
shopt -s inherit_errexit

readonly TAG=v0.4.0
# What is checked is the git tree: the same for the bundle, the upstream tag and a plain directory.
readonly TREE=0424752fbbc3bb01469ec830a30f2bc035497cd4
readonly NPM_PACKAGE=node-llama-cpp@3.21.1
readonly NPM_SHA512=E3N0Ev2Va0wzydvXYFwM9Hvyo07PoWjt8T/9GMc43Cvt8YkV/NU/tYUgEMC1grTPv2o9PRjQi0G3Wb5P/awiMg==
readonly UPSTREAM=https://github.com/ggml-org/llama.cpp

say() { echo "llama.cpp: $*" >&2; }
die() { say "$*"; exit 1; }

root=$(cd "$(dirname "$0")/.." && pwd)
readonly root
readonly recipe="$root/cmake/llama.cpp"
cache=${PLATEAU_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}/plateau}
[ "$cache" != /plateau ] || die "there is no home directory to keep the build in; set PLATEAU_CACHE_DIR"
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] \
  || die "the cache directory cannot be written: $cache; set PLATEAU_CACHE_DIR"
cache=$(cd "$cache" && pwd)
readonly cache
readonly downloaded="$cache/llama.cpp-$TAG-source"

for tool in "${CXX:-c++}" cmake ninja git; do
  command -v "$tool" >/dev/null || die "$tool is not installed; run scripts/install-packages.sh"
done

scratch=""
new_scratch() { rm -rf "$scratch"; scratch=$(mktemp -d "$cache/download.XXXXXX"); }

# The build depends on the recipe, the compiler and, because of -march=native, the processor.
build_key() {
  {
    cat "$recipe/CMakeLists.txt"
    "${CXX:-c++}" --version | sed -n 1p
    uname -m
    grep -m1 -E '^(flags|Features)' /proc/cpuinfo || true
  } | sha256sum | cut -c1-12
}

# The git tree hash of the files in directory $1, whether or not it is a checkout.
tree_of() {
  if [ "$(git -C "$1" rev-parse --verify -q 'HEAD^{tree}' 2>/dev/null)" = "$TREE" ] \
    && [ -z "$(git -C "$1" status --porcelain --untracked-files=no 2>/dev/null)" ]; then
    echo "$TREE"
    return
  fi
  local index
  index=$(mktemp -d)
  git --git-dir="$index/git" init -q --bare
  git --git-dir="$index/git" --work-tree="$1" -c core.autocrlf=false add -A -f . >/dev/null 2>&1 || true
  git --git-dir="$index/git" write-tree 2>/dev/null || echo unreadable
  rm -rf "$index"
}

# from_npm and from_upstream put the source into $scratch/source. They return non-zero when it is
# out of reach, and end the script when what they got is wrong.
from_npm() {
  command -v npm >/dev/null || { say "npm is not installed, trying $UPSTREAM"; return 1; }
  new_scratch
  say "downloading $NPM_PACKAGE (35 MB)"
  if ! (cd "$scratch" && npm pack "$NPM_PACKAGE" --loglevel=error --fetch-retries=1 \
          --fetch-retry-mintimeout=2000 >/dev/null 2>npm.log); then
    say "cannot download $NPM_PACKAGE ($(sed -nE 's/^npm (ERR!|error) code //p' "$scratch/npm.log" | sed -n 1p)), trying $UPSTREAM"
    return 1
  fi
  local found
  found=$(openssl dgst -sha512 -binary "$scratch"/*.tgz | base64 -w0)
  [ "$found" = "$NPM_SHA512" ] \
    || die "the download of $NPM_PACKAGE is corrupted: expected sha512 ${NPM_SHA512:0:16}..., got ${found:0:16}...; run again"
  tar -xzf "$scratch"/*.tgz -C "$scratch" package/llama/gitRelease.bundle \
    && git -c advice.detachedHead=false clone -q "$scratch/package/llama/gitRelease.bundle" \
         "$scratch/source" 2>/dev/null \
    || die "cannot unpack $NPM_PACKAGE into $cache; is the disc full?"
}

from_upstream() {
  new_scratch
  GIT_TERMINAL_PROMPT=0 git -c advice.detachedHead=false -c http.lowSpeedLimit=1000 \
    -c http.lowSpeedTime=30 clone -q --depth 1 --branch "$TAG" "$UPSTREAM" "$scratch/source" 2>/dev/null
}

# Prints the directory of a verified source tree. Runs in a subshell.
get_source() (
  trap 'rm -rf "$scratch"' EXIT
  if [ -n "${PLATEAU_LLAMA_CPP_SOURCE:-}" ]; then
    [ -d "$PLATEAU_LLAMA_CPP_SOURCE" ] \
      || die "PLATEAU_LLAMA_CPP_SOURCE is not a directory: $PLATEAU_LLAMA_CPP_SOURCE"
    local given
    given=$(tree_of "$PLATEAU_LLAMA_CPP_SOURCE")
    [ "$given" = "$TREE" ] \
      || die "PLATEAU_LLAMA_CPP_SOURCE is not llama.cpp $TAG: expected git tree $TREE, got $given"
    cd "$PLATEAU_LLAMA_CPP_SOURCE"
    pwd
    return
  fi
  if [ ! -d "$downloaded" ] || [ "$(tree_of "$downloaded")" != "$TREE" ]; then
    from_npm || from_upstream \
      || die "cannot get llama.cpp $TAG: neither $NPM_PACKAGE nor $UPSTREAM can be reached; set PLATEAU_LLAMA_CPP_SOURCE to a directory that holds it"
    local got
    got=$(tree_of "$scratch/source")
    [ "$got" = "$TREE" ] || die "the download is not llama.cpp $TAG: expected git tree $TREE, got $got"
    rm -rf "$downloaded"
    mv "$scratch/source" "$downloaded"
  fi
  echo "$downloaded"
)

# Whether stage $2 ("libs" or "tools") in directory $1 is built and its files are still there.
is_ready() {
  local file files=(source/include/llama.h source/ggml/include/ggml.h source/tools/mtmd/mtmd.h)
  if [ "$2" = libs ]; then
    files+=(build/libllama-jinja.a build/llama.cpp/src/libllama.a build/llama.cpp/ggml/src/libggml.a
            build/llama.cpp/ggml/src/libggml-base.a build/llama.cpp/ggml/src/libggml-cpu.a
            build/llama.cpp/tools/mtmd/libmtmd.a)
  else
    files+=(build/llama-bench/llama-bench)
  fi
  [ -f "$1/.built-$2" ] || return 1
  for file in "${files[@]}"; do [ -s "$1/$file" ] || return 1; done
}

# Prints the build directory in which stage $1 is ready.
build() {
  local dir source launcher=()
  dir="$cache/llama.cpp-$TAG-$(build_key)"
  if [ -n "${PLATEAU_LLAMA_CPP_SOURCE:-}" ]; then get_source >/dev/null; fi
  if ! is_ready "$dir" "$1"; then
    exec 9>"$cache/lock"
    flock -n 9 || { say "waiting for another build"; flock 9; }
    if ! is_ready "$dir" "$1"; then
      source=$(get_source)
      rm -f "$dir/.built-$1"
      mkdir -p "$dir/recipe"
      cp "$recipe/CMakeLists.txt" "$dir/recipe/"
      ln -sfn "$source" "$dir/source"
      command -v ccache >/dev/null \
        && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
      say "building $1 of $TAG (once per machine; some minutes on two cores)"
      local configure=(-S "$dir/recipe" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release
                       "${launcher[@]}" "-DLLAMA_CPP_SOURCE=$source")
      cmake "${configure[@]}" >"$dir/configure.log" 2>&1 \
        || cmake --fresh "${configure[@]}" >"$dir/configure.log" 2>&1 \
        || die "configuring failed, see $dir/configure.log"
      cmake --build "$dir/build" --target "$1" >&2 || die "the build of $1 failed, see above"
      touch "$dir/.built-$1"
    fi
    exec 9>&-
  fi
  echo "$dir"
}

case "${1:-}" in
  dir) build libs ;;
  llama-bench)
    build libs >/dev/null
    dir=$(build tools)
    echo "$dir/build/llama-bench/llama-bench"
    ;;
  *) die "usage: scripts/llama-cpp.sh dir|llama-bench" ;;
esac
