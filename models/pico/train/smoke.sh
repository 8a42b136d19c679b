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
"$python" "$here/make_tiles.py" --plateau "$plateau" --out held-out --pictures 4 --seed 4

# The first and the last "loss N" of a log.
falls() {
  awk -v log_name="$1" '{ for (i = 1; i < NF; ++i) if ($i == "loss") { last = $(i + 1); if (!n++) first = last } }
    END { printf "%s: loss %s -> %s\n", log_name, first, last; exit !(n > 1 && last < first) }' "$1"
}

"$python" "$here/train_tower.py" --tiles tiles --held-out held-out --out tower.pt --steps 60 --report 20 | tee tower.log
falls tower.log
"$python" "$here/train_decoder.py" --tiles tiles --held-out held-out --tower tower.pt --out decoder.pt \
  --stage 4,8,4,100,1e-3,60 --report 20 | tee decoder.log
falls decoder.log
# Started again, a finished run has nothing left to do.
"$python" "$here/train_decoder.py" --tiles tiles --held-out held-out --tower tower.pt --out decoder.pt \
  --stage 4,8,4,100,1e-3,60 --report 20 | grep -q "from stage 1 step 0"

"$python" "$here/export.py" --checkpoint decoder.pt --out exported
"$plateau" info exported/pico-internvl-text.gguf >/dev/null
"$plateau" info exported/pico-internvl-mmproj.gguf >/dev/null
"$plateau" needle --out needle --width 336 --height 224 --objects 3 >/dev/null
"$plateau" run -q -m exported/pico-internvl-text.gguf --mmproj exported/pico-internvl-mmproj.gguf \
  --image needle/needle-0000.jpg -p "What number is on the cat?" -n 2 >/dev/null

"$python" "$here/train_qwen25vl.py" --tiles tiles --out qwen.pt --export exported --steps 24 --report 8 --batch 4 | tee qwen.log
falls qwen.log
# Supported by the program, or this fails.
"$plateau" info exported/pico-qwen2.5vl-text.gguf >/dev/null
"$plateau" info exported/pico-qwen2.5vl-mmproj.gguf >/dev/null
"$plateau" run -q -m exported/pico-qwen2.5vl-text.gguf --mmproj exported/pico-qwen2.5vl-mmproj.gguf \
  --image needle/needle-0000.jpg -p "What number is on the cat?" -n 2 >/dev/null
echo "smoke: trained, exported and loaded"
