// Buffers become slots of one workspace.
#pragma once

#include "ir/plan.h"
#include "passes/pass.h"

namespace tfc::passes {

/// Gives every buffer a slot; buffers whose lifetimes do not overlap may share one. A slot is as large as its
/// largest buffer, an expression; offsets are running sums, so the published size is exact at any shape. The
/// largest buffer may lie over all slots that are free while it lives.
/// Which buffers share is decided at the design point, by the best of several orders, and never affects
/// correctness. --disable=reuse-memory gives each its own slot.
/// Before: lifetimes known.   After: every buffer has a slot.
bool plan_memory(ir::Module& module, PassContext& context);

/// No assignment can need less at `point`: the greatest sum of buffers that live at one record.
int64_t workspace_lower_bound(const ir::Plan& plan, const ir::Point& point);

}  // namespace tfc::passes
