#!/usr/bin/env bash
# A short benchmark with a built program: half a billion random weights, Plateau beside llama.cpp.
# docs/bench.md has the rest.   usage: scripts/bench.sh BUILD_DIR
set -euo pipefail
exec "$1/bin/plateau" bench --shape 0.5b --tokens 512,2048 --kv-budget full,1024 --block 512 \
  --against llama.cpp --repeats 1
