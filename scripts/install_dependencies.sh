#!/bin/sh
# Installs what building and testing need on Debian 12 and is not there yet. As root, or with sudo. Where everything is
# there already it does nothing, and needs neither.
set -eu

packages="cmake ninja-build g++ llvm-19 llvm-19-dev clang-19 liblld-19-dev libzstd-dev zlib1g-dev libboost-graph-dev
          libtoml11-dev libgtest-dev python3 python3-numpy"

missing=""
for package in $packages; do
  if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing="$missing $package"
  fi
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo"
else
  echo "install_dependencies: missing$missing; run this as root, or install sudo" >&2
  exit 1
fi
echo "installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086  # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
