#!/usr/bin/env bash
# The whole of training in little; a loss that does not fall or a file that does not load ends it.
#   usage: models/pico/train/smoke.sh [PLATEAU]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export PLATEAU=$(realpath "${1:-$here/../../../build/release/bin/plateau}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

SCALE=0.01 "$here/train.sh" trained
# Started again, a finished run has nothing left to do.
sums=$(cksum trained/*.pt trained/{tiles,held-out}/*)
SCALE=0.01 "$here/train.sh" trained
[[ $(cksum trained/*.pt trained/{tiles,held-out}/*) == "$sums" ]] || { echo "smoke: a finished run went on" >&2; exit 1; }

# The first and the last "loss N" of a log.
falls() {
  awk -v log_name="$1" '{ for (i = 1; i < NF; ++i) if ($i == "loss") { last = $(i + 1); if (!n++) first = last } }
    END { printf "%s: loss %s -> %s\n", log_name, first, last; exit !(n > 1 && last < first) }' "$1"
}

"$PLATEAU" needle --out needle --width 336 --height 224 --objects 3 >/dev/null
"$PLATEAU" needle --out film --film --seconds 4 --objects 2 >/dev/null
for family in internvl qwen2.5vl; do
  falls "trained/$family-tower.log"
  falls "trained/$family.log"
  # Supported by the program, or this fails.
  pair=(-m "trained/exported/pico-$family-text.gguf" --mmproj "trained/exported/pico-$family-mmproj.gguf")
  "$PLATEAU" run -q "${pair[@]}" --image needle/needle-0000.jpg -p "What number is on the cat?" -n 2 >/dev/null
  "$PLATEAU" run -q "${pair[@]}" --video film/needle-0000.* -p "How many cats are there?" -n 2 >/dev/null
done
echo "smoke: trained, exported and loaded"
