// How ir::Graph holds its nodes: a Boost.Graph adjacency_list. Only graph.cpp, algorithms.cpp and dot.cpp
// include this.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <memory>
#include <string>
#include <unordered_map>

#include "ir/graph.h"

namespace tfc::ir {

/// A vertex. The node lives behind a pointer, so that references to it survive the addition of others, and
/// copies of a graph share it until one of them edits it.
struct NodeCell {
  std::shared_ptr<Node> node;  // null: dead
  std::vector<Value> operands;
};

/// An edge runs from the operand's node to its user, one for each slot; the slots are the user's operands.
/// Edges in plain lists: that of a node with many readers is read, and written anew, as a whole.
using BoostGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, NodeCell>;

struct Graph::Impl {
  explicit Impl(size_t vertices = 0) : graph(vertices) {}
  BoostGraph graph;
  size_t living = 0;
  std::unordered_map<std::string_view, NodeId> by_name;  // the keys are the nodes' own names
  std::unordered_map<std::string, int> last_suffix;      // of names that were made unique
};

struct GraphAccess {
  static const BoostGraph& boost(const Graph& graph) { return graph.impl_->graph; }
};

}  // namespace tfc::ir
