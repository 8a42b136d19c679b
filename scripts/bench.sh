#!/usr/bin/env bash
# Runs every benchmark program of a build.   usage: scripts/bench.sh BUILD_DIR
set -euo pipefail
found=0
for program in "$1"/bin/*_bench; do
  [ -x "$program" ] || continue
  found=1
  "$program"
done
[ $found = 1 ] || echo "bench: no benchmark programs in $1/bin"
