// What the lowerings of attention share.
#pragma once

#include "passes/lower/rows.h"

namespace tfc::passes {

// As codegen/kernels/attention_parts.h.
inline constexpr int64_t kTileQueries = 32;
inline constexpr int64_t kMostBlockKeys = 64;

/// A kernel's settings of heads; `mask`: there is one of the keys.
ir::Attributes attention_settings(const Lowering& l, bool mask);

/// Operands that say who sees whom, from slot `first` on, and what else a kernel needs for them, as
/// codegen/kernels/attention_sight.h lists it. Bytes of scratch come back.
int64_t add_sight(Lowering& l, uint32_t first, ir::Attributes& attributes, std::vector<ir::Arg>& args);

}  // namespace tfc::passes
