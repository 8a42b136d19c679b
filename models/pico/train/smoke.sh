#!/usr/bin/env bash
# The whole of training in little: tiles, tower, language model, export; a loss that does not fall or a
# file that does not load ends it.   usage: models/pico/train/smoke.sh [PLATEAU]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
plateau=$(realpath "${1:-$here/../../../build/release/bin/plateau}")
python=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export PYTHONDONTWRITEBYTECODE=1

"$python" "$here/make_tiles.py" --plateau "$plateau" --out tiles --pictures 12 --seed 3
"$python" "$here/make_tiles.py" --plateau "$plateau" --out tiles --pictures 16 --colored 0 --seed 3
"$python" "$here/make_tiles.py" --plateau "$plateau" --out held-out --pictures 4 --seed 4

# The first and the last "loss N" of a log.
falls() {
  awk -v log_name="$1" '{ for (i = 1; i < NF; ++i) if ($i == "loss") { last = $(i + 1); if (!n++) first = last } }
    END { printf "%s: loss %s -> %s\n", log_name, first, last; exit !(n > 1 && last < first) }' "$1"
}

train() {  # family, options of the tower, options of the language model
  "$python" "$here/train_tower.py" --family "$1" --tiles tiles --held-out held-out --out "$1-tower.pt" --steps 60 \
    --report 20 $2 | tee "$1-tower.log"
  falls "$1-tower.log"
  decoder=("$here/train_decoder.py" --family "$1" --tiles tiles --held-out held-out --tower "$1-tower.pt"
    --out "$1-decoder.pt" --stage 4,8,4,100,1e-3,60 --report 20 $3)
  "$python" "${decoder[@]}" | tee "$1-decoder.log"
  falls "$1-decoder.log"
  # Started again, a finished run has nothing left to do.
  "$python" "${decoder[@]}" | grep -q "from stage 1 step 0"
  "$python" "$here/export.py" --checkpoint "$1-decoder.pt" --out exported
}

"$plateau" needle --out needle --width 336 --height 224 --objects 3 >/dev/null
answers() {  # family; supported by the program, or this fails
  "$plateau" info "exported/pico-$1-text.gguf" >/dev/null
  "$plateau" info "exported/pico-$1-mmproj.gguf" >/dev/null
  "$plateau" run -q -m "exported/pico-$1-text.gguf" --mmproj "exported/pico-$1-mmproj.gguf" \
    --image needle/needle-0000.jpg -p "What number is on the cat?" -n 2 >/dev/null
}

train internvl "" ""
answers internvl
"$python" "$here/fold_qk_norm.py" --checkpoint internvl-decoder.pt --tiles held-out --out start.pt
train qwen2.5vl "--teacher internvl-decoder.pt" "--init start.pt"
answers qwen2.5vl
echo "smoke: trained, exported and loaded"
