// The gradient of a key's bias is zero, and made so.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Marks the columns of column_sum nodes that add up the key gradients of attention: what adds the same
/// vector to every key adds the same number to all scores of a query, which softmax does not see. Keys that
/// are rotated by their position (RoPE) after the bias are another matter and stay as they are.
/// Before: differentiated graphs.   After: such sums have `cancelled` columns, which are exactly zero.
/// Why: what is left of the sum is rounding. Adam divides it by its own size, and the bias wanders; in
/// float32 it is also the one gradient that agrees with no other program. It changes numbers, so it runs at
/// every -O level.
bool cancel_key_bias(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
