// A sum and the norm of it are one kernel.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Fuses residual(x, y...) with the layer_norm or rms_norm that reads the sum, within a block or from one
/// block to the next, and, backwards, the gradient of a norm's input with the sum that it goes into: add(g,
/// norm_grad).
/// Before: what fuse-epilogues left: sums whose terms no product makes.   After: such a sum is normalised
/// while its row is in cache.
/// Why: a trip through memory less for each. Every element is rounded as before.
bool fuse_residual_norm(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
