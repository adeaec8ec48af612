// Reverse-mode differentiation of the entries train and vjp.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Walks train and vjp backwards, lets every operation's rule add the gradients of its operands, and adds the
/// parameters' to the gradients that the model keeps: outputs "grads:NAME", which take over that storage. vjp
/// starts from the input grad_output and also returns the gradients of its float inputs, "grad_x" and the
/// like.
/// Before: forward graphs.   After: forward and backward are one graph, so that what one saves for the other
/// is an ordinary value.
/// Only what leads to a parameter or a wanted input is differentiated; what frozen parameters do not need is
/// left to prune-frozen. Contributions to one
/// value are added in the order of the walk, so sums are the same in every build. An entry that has its
/// backward already is left alone.
bool differentiate(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
