// The Python module of a model: ctypes and NumPy over the shared library.
#pragma once

#include <cstdint>
#include <string>

#include "ir/module.h"

namespace tfc::codegen {

/// NAME.py: codegen/templates/module.py with this model's constants. `build_id` is the library's.
std::string python_module(const ir::Module& planned, uint64_t build_id);

}  // namespace tfc::codegen
