// One product for attention's projections.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Rewrites the products q, k and v of one input into one product with the joined weights and a split of its
/// columns; for attention to a memory, k and v.
/// Before: expanded, equal nodes merged: of products with equal weights there is one.   After: no two of an attention's projections read the same value.
/// Why: the input is read once, and its gradient is one product. That changes the order of sums in the
/// gradient, so it runs at every -O level.
bool fuse_qkv(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
