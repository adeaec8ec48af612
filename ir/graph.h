// The graph of one entry point: nodes, values, uses. Held in a Boost.Graph adjacency_list behind this
// interface.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ir/attributes.h"
#include "ir/diagnostic.h"
#include "ir/op.h"
#include "ir/type.h"

namespace tfc::ir {

struct NodeId {
  uint32_t index = std::numeric_limits<uint32_t>::max();
  bool valid() const { return index != std::numeric_limits<uint32_t>::max(); }
  friend auto operator<=>(const NodeId&, const NodeId&) = default;
};

/// A result of a node. Invalid: an absent operand.
struct Value {
  NodeId node;
  uint32_t result = 0;
  bool valid() const { return node.valid(); }
  friend auto operator<=>(const Value&, const Value&) = default;
};

struct Use {
  NodeId node;
  uint32_t slot = 0;
};

struct Node {
  OpKind op = OpKind::Input;
  Attributes attributes;
  std::string name;  // unique, stable, a path: "layers.0.attn.q"; results print as %name, %name#1
  Place place;       // what of the user's file it comes from
  std::vector<Type> results;
  int donates =
      -1;  // operand slot whose storage result 0 takes over (adamw: slots 0..3 <-> results); -1: none
  bool late = false;  // computed again for the backward (choose-recompute): runs just before a reader
  std::shared_ptr<const Graph> body;  // fused nodes only
};

struct Output {
  std::string name;  // "output", "loss.sum", "grads:layers.0.attn.q.weight", "cache:...", "params:*"
  Value value;
};

/// Node ids are stable until `compact`. Values are pure: nothing is updated in place but through `donates`.
/// A copy is cheap: it shares its nodes with the original until one of the two edits them.
class Graph {
 public:
  Graph();
  Graph(const Graph& other);
  Graph& operator=(const Graph& other);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  DType real = DType::F32;  // the module's real type, for shape rules

  /// Adds a node whose result types are given (leaves, blocks, fused nodes, readers of dumps). An empty or
  /// taken name is made unique: "add", "add.2".
  NodeId add_node(Node node, const std::vector<Value>& operands);

  /// Adds a primitive; its shape rule gives the result types. A misfit is a compiler fault (TFC_CHECK).
  NodeId add(OpKind op, const std::vector<Value>& operands, Attributes attributes = {}, std::string name = {},
             Place place = {});

  /// Adds a node of another graph, which both share, with operands of this one.
  NodeId add_shared(const Graph& other, NodeId node, std::vector<Value> operands);

  size_t node_capacity() const;  // ids are below this, dead ones included
  size_t node_count() const;     // living nodes
  bool alive(NodeId id) const;
  const Node& node(NodeId id) const;
  Node& edit(NodeId id);                     // the node, for this graph to change; not its name
  NodeId find(std::string_view name) const;  // invalid when there is none

  std::vector<NodeId> nodes() const;  // living, in order of id

  /// By slot, absent ones invalid. Good until a node is added.
  const std::vector<Value>& operands(NodeId id) const;
  Value operand(NodeId id, uint32_t slot) const;  // invalid when absent or past the last
  size_t operand_count(NodeId id) const;
  void set_operand(NodeId id, uint32_t slot, Value value);
  std::vector<Use> uses(Value value) const;    // by (node, slot); graph outputs do not count
  std::vector<NodeId> users(NodeId id) const;  // distinct nodes that use any result
  const Type& type(Value value) const;

  void replace_uses(Value from, Value to);  // in operands (but not those of to's node) and outputs
  void erase(NodeId id);                    // must be unused and no output
  size_t erase_unreachable();               // all that no output needs; returns how many
  void compact();                           // drops dead ids: node k of topological_order becomes id k

  std::vector<Output> outputs;
  Value output(std::string_view name) const;  // invalid when there is none

 private:
  friend struct GraphAccess;  // ir/graph_impl.h: the Boost graph, for algorithms.cpp
  NodeId insert(std::shared_ptr<Node> node, std::vector<Value> operands);
  void disconnect(NodeId operand, NodeId user);  // one edge
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tfc::ir
