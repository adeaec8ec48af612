// The order in which nodes run.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tfc::passes {

/// The operand whose storage a result takes over, or -1. AdamW's results p', m', v', g' take over p, m, v, g.
int donated_operand(const ir::Node& node, uint32_t result);

/// Primitives and fused nodes, operands before users, and readers of a donated value before the node that
/// takes it over. A late node waits until one of its readers has all else. Among the nodes that could run,
/// one that frees at least as much memory as it needs (at `point`) runs at once; otherwise a late one, or the
/// one that comes first in the graph. n log n.
std::vector<ir::NodeId> schedule(const ir::Graph& graph, const ir::Point& point);

}  // namespace tfc::passes
