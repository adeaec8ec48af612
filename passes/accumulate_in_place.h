// Gradients add themselves to memory.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Rewrites add(kept, gradient), where the sum takes over the memory of `kept` and the gradient is a
/// linear_dw, a column_sum, an embedding_grad or the dw of linear_loss_grad, into one fused node:
/// the gradient's kernel continues what is in memory.
/// Before: joint graphs.   After: such gradients have no memory of their own.
/// Why: a weight's gradient is as large as the weight; written, read and added it crosses memory three times
/// more. The sums begin with what is kept instead of ending with it, so this runs at every -O level.
bool accumulate_in_place(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
