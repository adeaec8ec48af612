#!/bin/sh
# Installs what is missing, builds, compiles examples/reverse.toml and trains it with the generated library until it
# reverses sequences that it has never seen.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/common.sh"

"$top/scripts/install_dependencies.sh"
build_preset release transformerc

out=$top/build/quickstart
mkdir -p "$out"
echo
echo "\$ transformerc examples/reverse.toml -o build/quickstart"
"$top/build/bin/transformerc" "$top/examples/reverse.toml" -o "$out"
echo
echo "\$ python3 examples/reverse.py build/quickstart"
"$(find_python)" "$top/examples/reverse.py" "$out"
