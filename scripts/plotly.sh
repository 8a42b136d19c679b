#!/usr/bin/env bash
# Obtains the pinned plotly.js (the basic bundle, MIT), which `plateau report` puts into its pages,
# into the cache outside the source and build trees; prints the directory that holds
# plotly-basic.min.js and LICENSE.
#
# PLATEAU_PLOTLY_SOURCE  a directory with these two files to use instead of downloading
# PLATEAU_CACHE_DIR      the cache (default: $XDG_CACHE_HOME/plateau or ~/.cache/plateau)
set -euo pipefail

readonly NPM_PACKAGE=plotly.js-basic-dist-min@4.1.1
readonly NPM_SHA512=1oNF8PeQx2hv/y7tqEVWKD3JGwn/MGEMQ8mL9HUwsaqG9FGy/OU5FHUHvzqbqxN4mnwZGI9abTiE775C4kkjMQ==
# Of plotly-basic.min.js and LICENSE, one after the other.
readonly FILES_SHA256=135d8ecf84e7659d7a0d00976566a751143d1a51574da6f1f412e4724dfc26b0

say() { echo "plotly: $*" >&2; }
die() { say "$*"; exit 1; }

cache=${PLATEAU_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}/plateau}
[ "$cache" != /plateau ] || die "there is no home directory to keep it in; set PLATEAU_CACHE_DIR"
readonly dir="$cache/${NPM_PACKAGE/@/-}"

hash_of() { cat "$1/plotly-basic.min.js" "$1/LICENSE" 2>/dev/null | sha256sum | cut -c1-64; }

if [ -n "${PLATEAU_PLOTLY_SOURCE:-}" ]; then
  [ "$(hash_of "$PLATEAU_PLOTLY_SOURCE")" = "$FILES_SHA256" ] \
    || die "PLATEAU_PLOTLY_SOURCE does not hold the files of $NPM_PACKAGE: $PLATEAU_PLOTLY_SOURCE"
  echo "$PLATEAU_PLOTLY_SOURCE"
  exit
fi
if [ "$(hash_of "$dir")" != "$FILES_SHA256" ]; then
  mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] \
    || die "the cache directory cannot be written: $cache; set PLATEAU_CACHE_DIR"
  command -v npm >/dev/null || die "npm is not installed; run scripts/install-packages.sh"
  scratch=$(mktemp -d "$cache/download.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  say "downloading $NPM_PACKAGE (0.4 MB)"
  (cd "$scratch" && npm pack "$NPM_PACKAGE" --loglevel=error --fetch-retries=2 >/dev/null) \
    || die "cannot download $NPM_PACKAGE; set PLATEAU_PLOTLY_SOURCE to a directory that holds it"
  found=$(openssl dgst -sha512 -binary "$scratch"/*.tgz | base64 -w0)
  [ "$found" = "$NPM_SHA512" ] \
    || die "the download of $NPM_PACKAGE is corrupted: expected sha512 ${NPM_SHA512:0:16}..., got ${found:0:16}...; run again"
  tar -xzf "$scratch"/*.tgz -C "$scratch" package/plotly-basic.min.js package/LICENSE \
    || die "cannot unpack $NPM_PACKAGE into $cache; is the disk full?"
  [ "$(hash_of "$scratch/package")" = "$FILES_SHA256" ] || die "the files of $NPM_PACKAGE are not the pinned ones"
  rm -rf "$dir"
  mv "$scratch/package" "$dir"
fi
echo "$dir"
