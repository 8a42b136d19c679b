#!/usr/bin/env bash
# Installs the Debian packages that a purpose needs; calls apt-get only when one is missing.
#
#   scripts/install-packages.sh [build] [demo] [bench] [train] [photos] [lint]     (default: build)
set -euo pipefail

packages_for() {
  case "$1" in
    build) echo "ca-certificates ccache cmake fonts-dejavu-core g++ git libavcodec-dev libavformat-dev
                 libavutil-dev libbenchmark-dev libcli11-dev libfmt-dev libgmock-dev libgtest-dev
                 libjpeg-dev libpng-dev libswscale-dev libvips-dev make ninja-build
                 nlohmann-json3-dev npm openssl pkg-config" ;;
    demo) echo "lomiri-wallpapers-20.04" ;;  # photographs under CC-BY-SA-3.0
    bench) echo "hyperfine jq" ;;
    train) echo "libopenblas0-openmp python3-numpy python3-pil python3-torch" ;;  # OpenBLAS: else a slow BLAS
    photos) echo "lomiri-wallpapers-16.04 lomiri-wallpapers-20.04" ;;  # 19, under CC-BY and CC-BY-SA
    lint) echo "clang clang-format clang-tidy" ;;
    *) echo "packages: unknown purpose '$1': expected build, demo, bench, train, photos or lint" >&2; exit 2 ;;
  esac
}

is_installed() {
  [ "$1" = npm ] && command -v npm >/dev/null && return  # it also comes with other builds of Node.js
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v apt-get >/dev/null; then
  echo "packages: this is no Debian; see scripts/install-packages.sh for what is needed" >&2
  exit 0
fi
missing=()
for purpose in "${@:-build}"; do
  names=$(packages_for "$purpose")
  for name in $names; do is_installed "$name" || missing+=("$name"); done
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null \
    || { echo "packages: these are missing, and neither root nor sudo is here: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2 || echo "packages: the package lists could not be updated" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 \
  || { echo "packages: apt-get could not install ${missing[*]}" >&2; exit 1; }
