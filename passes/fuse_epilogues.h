// What follows a product happens where the product is made.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Fuses what a product's result goes through into the product:
///   add(kept, linear_dw(dy, x)), add(kept, column_sum(dy)) with `kept` donated   gradients add themselves to memory
/// Before: joint graphs.   After: such gradients have no memory of their own.
/// Why: a weight's gradient is as large as the weight; written, read and added it crosses memory three times more.
bool fuse_epilogues(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
