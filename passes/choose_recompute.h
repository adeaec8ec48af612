// What the backward computes again instead of keeping it.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Copies nodes of the forward for the backward, which then reads the copies: what the forward made is free
/// as soon as the forward has read it. The copies are `late`: they run when one of their readers has all
/// else, so the last layer's come first and one layer's live at a time. How much is copied is the
/// description's `recompute`:
///   none   what costs next to nothing: norms, activations, gates, rotations and embeddings, where what they
///          are made of is kept anyway and they are large at the design point
///   all    also everything within a layer: only what goes from one layer to the next is kept
///   auto   as all, for as few layers as the budget allows, from the first one on
/// What is kept of the rest is a minimum cut (capacity: bytes) between what may not be copied and what the
/// backward reads, as in rematerialisation by min-cut (Zheng et al. 2022 for AOTAutograd).
/// Before: differentiated graphs of primitives.   After: the same values; an entry that has late nodes is
/// left alone. Why: memory. The copies run the same kernels on the same operands, so no bit changes.
bool choose_recompute(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
