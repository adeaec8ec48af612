// The C header of a generated library.
#pragma once

#include <cstdint>
#include <string>

#include "ir/module.h"

namespace tfc::codegen {

/// NAME.h: the common vocabulary (runtime/api.h), this model's sizes and tables, and its prefixed functions.
/// C99 and C++. `planned` is in phase planned.
std::string c_header(const ir::Module& planned, uint64_t build_id);

}  // namespace tfc::codegen
