# Sourced by the scripts beside it, with `top` set to the repository's folder.

cores=$(nproc)

# build_preset NAME TARGET...: configures and builds targets (all without any) of a CMake preset.
build_preset() {
  preset=$1
  shift
  launcher=""
  if command -v ccache >/dev/null; then
    launcher="-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  fi
  (cd "$top" && cmake --preset "$preset" $launcher >/dev/null)
  if [ $# -gt 0 ]; then
    (cd "$top" && cmake --build --preset "$preset" -j "$cores" --target "$@")
  else
    (cd "$top" && cmake --build --preset "$preset" -j "$cores")
  fi
}

# A python3 with NumPy: the first on the PATH may be one without.
find_python() {
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import numpy' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "no python3 with NumPy found; Debian's is the package python3-numpy" >&2
  return 1
}
