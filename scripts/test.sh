#!/bin/sh
# Installs what is missing, builds, runs the whole test suite; then the unit tests that are worth it under sanitizers.
#   scripts/test.sh [release|sanitizers]   one half alone
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/common.sh"
part=${1:-all}

"$top/scripts/install_dependencies.sh"

if [ "$part" = all ] || [ "$part" = release ]; then
  build_preset release
  ctest --test-dir "$top/build" -j2 --output-on-failure --no-tests=error
fi

# One process for all tests of a folder: starting one under a sanitizer takes longer than most tests.
if [ "$part" = all ] || [ "$part" = sanitizers ]; then
  build_preset release transformerc  # compiles the model whose kernels test_sanitized runs
  build_preset asan-ubsan test_ir test_frontend test_passes test_runtime test_sanitized
  for folder in ir frontend passes runtime sanitized; do
    "$top/build-asan-ubsan/tests/test_$folder" --gtest_brief=1
  done
  # The thread sanitizer wants its shadow memory where a random layout may already have put something else.
  fixed_layout=""
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_layout="setarch $(uname -m) -R"
  fi
  build_preset tsan test_runtime test_sanitized
  for folder in runtime sanitized; do
    $fixed_layout "$top/build-tsan/tests/test_$folder" --gtest_brief=1
  done
fi
