// What follows a product happens where the product is made.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Fuses what a product's result goes through at once into the product, element by element (the bias is part
/// of `linear` already):
///   activation(linear(x, w, b))                   also keeps what went into the activation, where the
///                                                 backward wants it
///   residual(x, linear(y, w, b)), add(x, linear(y, w, b)), add(g, linear_dx(dy, w))
///   activation_grad(linear_dx(dy, w), x)
/// and, of gated feed-forwards, whose halves are columns of one product:
///   multiply(activation(gate), up)                and its derivative, which computes the activation again
///                                                 instead of keeping it
/// Before and after: fused graphs.
/// Why: each would be a trip of f[B,T,F] through memory of its own. Every element is rounded as before.
bool fuse_epilogues(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
