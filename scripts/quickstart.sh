#!/bin/sh
# Installs what is missing, builds, compiles examples/reverse.toml and trains it with the generated library until it
# reverses sequences that it has never seen.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/common.sh"

"$top/scripts/install_dependencies.sh"
build_preset release transformerc

python=$(find_python)
cd "$top"
echo
echo "\$ build/bin/transformerc examples/reverse.toml -o build/quickstart"
build/bin/transformerc examples/reverse.toml -o build/quickstart
echo
echo "\$ python3 examples/reverse.py build/quickstart"
"$python" examples/reverse.py build/quickstart
echo
echo "That worked. \`export PATH=$top/build/bin:\$PATH\`, and README.md goes on from here."
