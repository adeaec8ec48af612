// Boost.Graph's algorithms as plain functions over ir::Graph.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace tfc::ir {

/// Operands before users; among the ready ones those that are not late, of these the least id first, so the
/// order is a function of the graph alone. A cycle is a compiler fault; `has_cycle` asks first.
std::vector<NodeId> topological_order(const Graph& graph);
bool has_cycle(const Graph& graph);

/// Do the ids themselves go from operands to users?
bool operands_come_first(const Graph& graph);

/// Nodes that `from` needs, itself included (ancestors), or that need it (descendants), by id -> bool.
std::vector<bool> ancestors(const Graph& graph, const std::vector<NodeId>& from);
std::vector<bool> descendants(const Graph& graph, const std::vector<NodeId>& from);

/// Least-cost set of nodes whose removal separates `sources` from `sinks` (node-split max-flow,
/// Boykov-Kolmogorov). cost < 0: may not be cut; a path without any node that may be is a compiler fault.
/// Sources and sinks may be cut themselves, by their cost.
std::vector<NodeId> min_cut(const Graph& graph, const std::vector<NodeId>& sources,
                            const std::vector<NodeId>& sinks, const std::function<int64_t(NodeId)>& cost);

/// Nodes without which the (undirected) graph falls apart: layer borders.
std::vector<NodeId> articulation_points(const Graph& graph);

/// The dearest path, in order of execution.
std::vector<NodeId> critical_path(const Graph& graph, const std::function<double(NodeId)>& cost);

}  // namespace tfc::ir
