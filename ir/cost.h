// What a node costs, for reports and drawings: the convention is two operations for each multiply-add.
#pragma once

#include "ir/graph.h"

namespace tfc::ir {

struct Cost {
  Dim flops;
  Dim bytes;  // operands read and results written, each once
};

/// Of one node. Leaves, splits and blocks cost nothing; a fused node costs what its body computes, and its
/// own traffic.
Cost node_cost(const Graph& graph, NodeId id);

}  // namespace tfc::ir
