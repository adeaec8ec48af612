// A frozen parameter's gradient is dead code.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Drops the gradients of frozen parameters from train and vjp, and with them all that only they needed:
/// their kernels, what the forward kept for them, and the backward below the lowest parameter that moves (but
/// vjp still goes down to a float input). A loss none of whose gradients is left becomes a plain loss.
/// Before: differentiated graphs.   After: no output "grads:NAME" names a frozen parameter.
/// Why: freezing is worth its savings. What is left is computed as before, to the bit; without the pass the
/// gradients are there, take their memory, and no step reads them.
bool prune_frozen(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
