#!/usr/bin/env bash
# Trains both pairs from nothing: tiles, towers, language models, GGUF files. Started again, it goes on where it was.
#   usage: models/pico/train/train.sh OUT [PHOTOS]
# Of a folder of photographs every fourth is held out; without one all backgrounds are drawn. SCALE=0.01 makes
# all of it that much smaller, PLATEAU is the program, PYTHON one that has PyTorch, SEED another run's.
set -euo pipefail
export LC_ALL=C  # the order of files

here=$(cd "$(dirname "$0")" && pwd)
out=$1
photos=()
held_out_photos=()
if [[ $# -gt 1 ]]; then
  mkdir -p "$out"/photos-{training,held-out}
  all=("$(realpath "$2")"/*.jpg)
  for i in "${!all[@]}"; do
    if ((i % 4)); then part=training; else part=held-out; fi
    ln -sf "${all[i]}" "$out/photos-$part"
  done
  photos=(--photos photos-training)
  held_out_photos=(--photos photos-held-out)
fi
scale=${SCALE:-1}
seed=${SEED:-1}
plateau=$(realpath "${PLATEAU:-$here/../../../build/release/bin/plateau}")
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
mkdir -p "$out"
cd "$out"

run() { "${PYTHON:-/usr/bin/python3}" "$here/$1.py" "${@:2}"; }
scaled() { awk -v n="$1" -v scale="$scale" 'BEGIN { n *= scale; print int(n) + (n > int(n)) }'; }
# Both pairs at a time, each on half of the cores.
threads=$((($(nproc) + 1) / 2))
data=(--tiles tiles --held-out held-out --seed "$seed" --threads "$threads")

run make_tiles --plateau "$plateau" --out tiles --pictures "$(scaled 1500)" --colored "$(scaled 560)" \
  --seed "$seed" "${photos[@]}"
run make_tiles --plateau "$plateau" --out held-out --pictures "$(scaled 24)" --colored "$(scaled 19)" \
  --seed "$((seed + 1000))" "${held_out_photos[@]}"

train() {  # family
  run train_tower --family "$1" "${data[@]}" --out "$1-tower.pt" --steps "$(scaled 8000)" \
    --report "$(scaled 500)" >>"$1-tower.log"
  run train_decoder --family "$1" "${data[@]}" --tower "$1-tower.pt" --out "$1.pt" --scale "$scale" >>"$1.log"
  run export --checkpoint "$1.pt" --out exported
}
set -m  # each in a group of its own, so that ending this one ends all of it
trap 'for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done' EXIT
train internvl &
train qwen2.5vl &
wait -n
wait -n
