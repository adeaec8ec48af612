// What the fusing passes share.
#pragma once

#include "ir/graph.h"

namespace tfc::passes {

/// Replaces `nodes` (operands before users) by one fused node of that kernel, whose body they become.
/// `results`: the values of `nodes` that are still needed, which become the fused node's results in that
/// order; nothing else of `nodes` may have a use outside. It is late where the first result's node is.
/// Operands are numbered in the order in which the nodes read them first. A donation of result 0 is kept. The
/// caller makes sure that no path leaves the nodes and comes back.
ir::NodeId fuse_nodes(ir::Graph& graph, const std::vector<ir::NodeId>& nodes,
                      const std::vector<ir::Value>& results, std::string_view kernel,
                      const std::string& name);

/// Do both run in the forward's or backward's own time, or both late? Else one would drag the other along.
bool run_together(const ir::Graph& graph, ir::NodeId a, ir::NodeId b);

bool is_output(const ir::Graph& graph, ir::Value value);

/// The one reader of the value, invalid when there are more or the value is an output.
ir::NodeId only_reader(const ir::Graph& graph, ir::Value value);

}  // namespace tfc::passes
