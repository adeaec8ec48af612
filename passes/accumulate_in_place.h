// Gradients add themselves to memory.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Rewrites add(kept, linear_dw(dy, x)) and add(kept, column_sum(dy)), where the sum takes over the memory of `kept`,
/// into one fused node each: the kernel continues what is in memory.
/// Before: joint graphs.   After: such gradients have no memory of their own.
/// Why: a weight's gradient is as large as the weight; written, read and added it crosses memory three times more.
/// The sums begin with what is kept instead of ending with it, so this runs at every -O level.
bool accumulate_in_place(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
