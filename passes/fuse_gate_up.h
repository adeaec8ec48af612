// One product for the two halves of a gated feed-forward.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Rewrites the products gate and up of one input into one product with the joined weights and a split.
/// Before: expanded.   After: no feed-forward has two products of its input.
/// Why: as for q, k and v; it runs at every -O level for the same reason.
bool fuse_gate_up(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
