// How ir::Graph holds its nodes: a Boost.Graph adjacency_list. Only graph.cpp, algorithms.cpp and dot.cpp
// include this.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <memory>
#include <string>
#include <unordered_map>

#include "ir/graph.h"

namespace tfc::ir {

/// An edge runs from the operand's node to its user. Parallel edges differ in the slot.
struct OperandEdge {
  uint32_t slot = 0;    // of the user
  uint32_t result = 0;  // of the operand's node
};

/// A vertex. The node lives behind a pointer, so that references to it survive the addition of others.
struct NodeCell {
  std::shared_ptr<Node> node;  // null: dead
  uint32_t operand_count = 0;  // absent operands included, which have no edge
};

// multisetS: an edge is found by its other end in logarithmic time, so that a mask with hundreds of readers
// can be replaced in all of them without a quadratic search; and edges are listed in the order of ids.
using BoostGraph =
    boost::adjacency_list<boost::multisetS, boost::vecS, boost::bidirectionalS, NodeCell, OperandEdge>;

struct Graph::Impl {
  BoostGraph graph;
  size_t living = 0;
  std::unordered_map<std::string, NodeId> by_name;
  std::unordered_map<std::string, int> last_suffix;  // of names that were made unique
};

struct GraphAccess {
  static const BoostGraph& boost(const Graph& graph) { return graph.impl_->graph; }
};

}  // namespace tfc::ir
