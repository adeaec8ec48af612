// Graphs become tables of kernel calls.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Orders each entry's nodes, decides where every value lives, and lets each node write its kernel calls.
/// Before: any graph of primitives and fused nodes.   After: every entry has a plan, whose buffers have
/// lifetimes and no slots yet.
/// Why: what runs is then constant data. Every size and count in it is an expression in B, T, S and C.
bool plan(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
