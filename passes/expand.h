// Blocks become primitive operations.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Replaces every block by the primitives that compute it, and creates the module's parameters: names,
/// shapes, order, starting values.
/// Before: blocks only, norms placed.   After: primitives only; every value has a shape; parameters are laid
/// out.
/// Why: each later pass then knows a small closed set of operations. Attention and the loss stay whole,
/// because their streaming forms have derivatives of their own.
bool expand(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
