#!/bin/sh
# Speed of the compiled examples beside this machine's peak of the same minute.
#   bench/speed.sh [flags of `transformerc bench`]       needs build/bin/transformerc
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
program=$top/build/bin/transformerc
"$program" bench "$top/examples/gpt2.toml" --at B=4,T=64 "$@"
echo
"$program" bench "$top/examples/nano.toml" "$@"
echo
"$program" bench "$top/examples/reverse.toml" --at B=32,T=8,S=8 "$@"
