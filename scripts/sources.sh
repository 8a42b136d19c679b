#!/usr/bin/env bash
# The C++ sources of this project, each ended by a NUL.   usage: scripts/sources.sh [FOLDER...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- include src tests bench
for folder; do
  [ ! -d "$folder" ] || find "$folder" \( -name '*.cc' -o -name '*.h' \) -print0
done | sort -z
