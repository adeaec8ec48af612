#include "passes/recompute/recompute.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/algorithms.h"

namespace tfc::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int64_t kWorthCopying =
    2 << 20;  // bytes at the point: what is smaller stays in cache, or does not matter

bool is_leaf(const Graph& graph, NodeId id) {
  return ir::info(graph.node(id).op).op_class == ir::OpClass::Leaf;
}

/// Row by row or element by element: about as fast as reading what it makes.
bool is_cheap(OpKind op) {
  switch (op) {
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::Activation:
    case OpKind::Dropout:
    case OpKind::Multiply:
    case OpKind::Rope:
    case OpKind::MaskRows:
    case OpKind::Embedding:
    case OpKind::PositionRows:
    case OpKind::AddRows:
    case OpKind::Dispatch:
    case OpKind::Add:
    case OpKind::Edit:
    case OpKind::Split:
      return true;
    default:
      return false;
  }
}

/// Which nodes of a differentiated graph are forward, and what of them the backward reads.
struct Halves {
  std::vector<bool> is_backward;  // by id
  std::vector<NodeId> read;       // forward nodes that a backward node reads, in the order of the backward

  explicit Halves(const Graph& graph) : is_backward(graph.node_capacity()) {
    std::vector<NodeId> turns;
    for (NodeId id : graph.nodes()) {
      const Node& node = graph.node(id);
      const bool upstream = node.op == OpKind::Input && node.name.starts_with("grad_output");
      if (upstream || node.op == OpKind::LinearLossGrad) turns.push_back(id);
    }
    if (turns.empty()) return;
    is_backward = ir::descendants(graph, turns);
    std::set<NodeId> seen;
    for (NodeId id : ir::topological_order(graph)) {
      if (!reads_late(graph, id)) continue;
      for (Value operand : graph.operands(id)) {
        if (is_forward(graph, operand) && seen.insert(operand.node).second) read.push_back(operand.node);
      }
    }
  }

  /// A node of the backward but the loss, which reads the forward's results while they are there.
  bool reads_late(const Graph& graph, NodeId id) const {
    const OpKind op = graph.node(id).op;
    return is_backward[id.index] && op != OpKind::LinearLossGrad && op != OpKind::AddBalance;
  }
  /// Worth a choice: by-products of a row (means, log-sums) are small, and kept as the forward made them.
  bool is_forward(const Graph& graph, Value value) const {
    if (!value.valid() || is_backward[value.node.index] || is_leaf(graph, value.node)) return false;
    return value.result == 0 || graph.node(value.node).op == OpKind::Split;
  }
};

class Recomputation {
 public:
  Recomputation(Graph& graph, const std::vector<std::string>& layers, const ir::Point& point)
      : graph_(graph), point_(point), layers_(layers.begin(), layers.end()), halves_(graph) {}

  Recomputed run() {
    Recomputed result;
    if (halves_.read.empty()) return result;
    const int64_t before = bytes_of({halves_.read.begin(), halves_.read.end()});
    choose_kept();
    for (NodeId id : ir::topological_order(graph_)) {
      if (!halves_.reads_late(graph_, id)) continue;
      const std::vector<Value> operands = graph_.operands(id);
      for (uint32_t slot = 0; slot < operands.size(); ++slot) {
        if (!halves_.is_forward(graph_, operands[slot])) continue;
        graph_.set_operand(id, slot, again(operands[slot], Reader::Backward));
      }
    }
    graph_.erase_unreachable();
    leave_by_products_to_copies();
    for (const auto& [what, copy] : copies_) result.copies.push_back(copy);
    std::sort(result.copies.begin(), result.copies.end());
    result.bytes_less = before - bytes_of(used_);
    return result;
  }

 private:
  /// Of a layer that is computed again all but what another one reads; else what is cheap and large.
  bool may_be_copied(NodeId id) const {
    const std::string layer = layer_of(graph_.node(id).name);
    if (layers_.contains(layer)) return !leaves_layer(id, layer);
    const OpKind op = graph_.node(id).op;
    return is_cheap(op) && (op == OpKind::Split || bytes_of(id) >= kWorthCopying);
  }

  bool leaves_layer(NodeId id, const std::string& layer) const {
    for (NodeId user : graph_.users(id)) {
      if (!halves_.is_backward[user.index] && layer_of(graph_.node(user).name) != layer) return true;
    }
    return false;
  }

  void choose_kept() {
    std::vector<NodeId> sources;
    for (NodeId id : graph_.nodes()) {
      if (is_leaf(graph_, id) || (!halves_.is_backward[id.index] && !may_be_copied(id)))
        sources.push_back(id);
    }
    const auto cost = [&](NodeId id) { return is_leaf(graph_, id) ? 0 : bytes_of(id); };
    for (NodeId id : ir::min_cut(graph_, sources, halves_.read, cost)) kept_.insert(id);
  }

  enum class Reader { Copy, Backward };

  /// What the reader gets in place of a forward value. A norm is copied for each kind of reader: the products
  /// that follow it in the copied forward need it long before their weights' gradients do.
  Value again(Value value, Reader reader) {
    const NodeId id = value.node;
    if (is_leaf(graph_, id)) return value;
    if (kept_.contains(id)) {
      used_.insert(id);
      return value;
    }
    const OpKind op = graph_.node(id).op;
    const bool is_norm = op == OpKind::LayerNorm || op == OpKind::RmsNorm;
    const std::pair key(id, is_norm ? reader : Reader::Copy);
    if (const auto found = copies_.find(key); found != copies_.end()) return {found->second, value.result};
    std::vector<Value> operands = graph_.operands(id);
    for (Value& operand : operands) {
      if (operand.valid()) operand = again(operand, Reader::Copy);
    }
    if (op == OpKind::Split && operands[0].node == graph_.operand(id, 0).node) return value;  // a view
    Node node = graph_.node(id);
    node.name += ".again";
    node.late = true;
    copies_[key] = graph_.add_node(std::move(node), operands);
    return {copies_[key], value.result};
  }

  /// Nobody may be left who wants more of a forward node than its by-products, as of a last layer in vjp: then
  /// its copy gives these too, and the forward does not run it. Readers first, so that whole layers go.
  void leave_by_products_to_copies() {
    std::map<NodeId, NodeId> copy_of;
    for (const auto& [what, copy] : copies_) copy_of[what.first] = copy;
    const std::vector<NodeId> order = ir::topological_order(graph_);
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const auto copy = copy_of.find(*id);
      if (copy != copy_of.end() && graph_.uses({*id, 0}).empty()) {
        const auto results = static_cast<uint32_t>(graph_.node(*id).results.size());
        for (uint32_t i = 1; i < results; ++i) graph_.replace_uses({*id, i}, {copy->second, i});
      }
      if (!graph_.node(*id).late && !halves_.is_backward[id->index] && is_unused(*id)) graph_.erase(*id);
    }
  }

  bool is_unused(NodeId id) const {
    const auto is_of = [&](const ir::Output& output) { return output.value.node == id; };
    return graph_.users(id).empty() && std::none_of(graph_.outputs.begin(), graph_.outputs.end(), is_of);
  }

  /// Memory of the node's results at the point; a view costs what it is a view of.
  int64_t bytes_of(NodeId id) const {
    if (graph_.node(id).op == OpKind::Split) return bytes_of(graph_.operand(id, 0).node);
    int64_t bytes = 0;
    for (const ir::Type& type : graph_.node(id).results) bytes += type.bytes().at(point_);
    return bytes;
  }

  int64_t bytes_of(const std::set<NodeId>& nodes) const {
    std::set<NodeId> whole;
    for (NodeId id : nodes) {
      while (graph_.node(id).op == OpKind::Split) id = graph_.operand(id, 0).node;
      whole.insert(id);
    }
    int64_t bytes = 0;
    for (NodeId id : whole) bytes += is_leaf(graph_, id) ? 0 : bytes_of(id);
    return bytes;
  }

  Graph& graph_;
  const ir::Point& point_;
  const std::set<std::string> layers_;
  const Halves halves_;
  std::set<NodeId> kept_, used_;  // may be read by the backward; is read
  std::map<std::pair<NodeId, Reader>, NodeId> copies_;
};

}  // namespace

std::string layer_of(const std::string& path) {
  constexpr std::string_view word = "layers.";
  const size_t found = path.find(word);
  if (found == std::string::npos || (found > 0 && path[found - 1] != '.')) return "";
  return path.substr(0, path.find_first_not_of("0123456789", found + word.size()));
}

std::vector<std::string> layers_with_backward(const Graph& graph) {
  const Halves halves(graph);
  std::vector<std::string> layers;
  for (auto id = halves.read.rbegin(); id != halves.read.rend(); ++id) {  // the backward's order, reversed
    std::string layer = layer_of(graph.node(*id).name);
    if (!layer.empty() && std::find(layers.begin(), layers.end(), layer) == layers.end())
      layers.push_back(std::move(layer));
  }
  return layers;
}

Recomputed recompute_in(Graph& graph, const std::vector<std::string>& layers, const ir::Point& point) {
  return Recomputation(graph, layers, point).run();
}

}  // namespace tfc::passes
