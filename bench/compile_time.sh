#!/bin/sh
# Compile time against depth: CPU seconds for models of 12 and of 96 layers, best of five each.
#   bench/compile_time.sh            needs build/bin/transformerc
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

cpu_seconds() {
  best=""
  for _ in 1 2 3 4 5; do
    seconds=$( { bash -c "TIMEFORMAT=%U; time '$top/build/bin/transformerc' '$top/examples/gpt2.toml' \
      --set model.layers=$1 -o '$out' >/dev/null"; } 2>&1 )
    best=$(printf '%s\n%s\n' "$seconds" "$best" | sort -n | grep . | head -n 1)
  done
  echo "$best"
}

twelve=$(cpu_seconds 12)
ninety_six=$(cpu_seconds 96)
awk -v a="$twelve" -v b="$ninety_six" 'BEGIN { printf "12 layers %.2f s, 96 layers %.2f s: ratio %.2f\n", a, b, b / a }'
