#!/usr/bin/env bash
# Makes a 4K picture with small numbered objects, asks the bundled model for one of the numbers, and
# shows what that took.   usage: scripts/demo.sh [PLATEAU]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
plateau=$(realpath "${1:-$root/build/release/bin/plateau}")
seed=${DEMO_SEED:-2}
photo=/usr/share/backgrounds/Kleiber_by_Lukas_Baubkus.jpg  # Debian: lomiri-wallpapers-20.04
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

background=()
on="drawn patterns"
if [ -f "$photo" ]; then background=(--background "$photo"); on="the photograph $(basename "$photo")"; fi

"$plateau" needle --out "$scratch" --width 3840 --height 2160 --seed "$seed" "${background[@]}" >/dev/null
field() { sed -nE "s/.*\"$1\": ?\"?([^\",}]*).*/\1/p" "$2" | head -n 1; }
question=$(field question "$scratch/set.jsonl")
truth=$(field answer "$scratch/set.jsonl")
picture=$(field image "$scratch/set.jsonl")

echo "A 3840x2160 picture: 8 objects with a number each, on $on."
echo "Question: $question"
answer=$(cd "$scratch" && "$plateau" run -m "$root/models/pico/pico-internvl-text.gguf" \
  --mmproj "$root/models/pico/pico-internvl-mmproj.gguf" \
  --image "$picture" -p "$question" -t 1 --stats-json "$scratch/stats.json")
stat() { field "$1" "$scratch/stats.json"; }
row() { printf '  %-20s %s\n' "$1" "$2"; }
mib() { echo "$(($1 / 1048576)) MiB"; }
echo
row picture "$(stat original_width)x$(stat original_height) $(stat format), used at $(stat used_width)x$(stat used_height)"
row tiles "$(stat tiles)"
row "visual tokens" "$(stat visual_tokens) of $(stat prompt_tokens), in $(stat blocks) blocks"
row "KV cache" "$(($(stat kv_bytes) / 1024)) KiB, budget $(stat kv_budget)"
row "first token after" "$(printf '%.1f s' "$(stat ttft_ms)e-3")"
row "peak memory" "$(mib "$(stat peak_rss_bytes)"), $(mib "$(stat peak_anon_bytes)") of it anonymous"
row answer "${answer:-(none)}"
row truth "$truth"
echo
[ -n "$answer" ] || { echo "No answer came."; exit 1; }
if [ "$answer" = "$truth" ]; then
  echo "The answer is right."
else
  echo "The answer is wrong: the bundled model misreads one now and then (models/pico/README.md)."
fi
