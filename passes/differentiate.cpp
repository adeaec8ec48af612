#include "passes/differentiate.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/algorithms.h"
#include "ir/gradient.h"
#include "ir/taps.h"
#include "passes/derive/derive.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Type;
using ir::Value;

class Walk : public ir::GradientContext {
 public:
  Walk(Graph& graph, const std::vector<NodeId>& wanted_leaves)
      : graph_(graph), leads_to_wanted_(ir::descendants(graph, wanted_leaves)) {}

  /// The upstream gradient of an output.
  void seed(Value value, Value upstream) { accumulate(value, upstream); }

  void run() {
    const std::vector<NodeId> order = ir::topological_order(graph_);
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (!leads_to_wanted_[id->index] || !ir::is_primitive(graph_.node(*id).op)) continue;
      if (!is_loss(graph_.node(*id).op) && !receives(*id)) continue;
      current_ = *id;
      name_ = graph_.node(*id).name;
      ir::gradient(graph_.node(*id).op, *this);
    }
  }

  Value gradient_of(Value value) const {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? Value{} : found->second;
  }

  /// All contributions to a parameter's gradient, in the order of the walk.
  std::vector<Value> contributions(NodeId parameter) const {
    const auto found = of_parameters_.find(parameter);
    return found == of_parameters_.end() ? std::vector<Value>() : found->second;
  }

  const Node& node() const override { return graph_.node(current_); }
  Value operand(uint32_t slot) const override { return graph_.operand(current_, slot); }
  size_t operand_count() const override { return graph_.operand_count(current_); }
  Value result(uint32_t index) const override { return {current_, index}; }
  Value upstream(uint32_t index) const override { return gradient_of({current_, index}); }

  bool wanted(uint32_t slot) const override {
    const Value value = operand(slot);
    if (!value.valid() || !leads_to_wanted_[value.node.index]) return false;
    const ir::DType dtype = graph_.type(value).dtype;
    return dtype == graph_.real || dtype == ir::DType::F64;  // losses are f64 always
  }

  NodeId add(OpKind op, const std::vector<Value>& operands, ir::Attributes attributes,
             std::string_view suffix) override {
    const std::string ending(suffix.empty() ? ir::info(op).text : suffix);
    return graph_.add(op, operands, std::move(attributes), name_ + "." + ending, node().place);
  }

  Value zeros(const Type& type) override {
    Node node;
    node.op = OpKind::Zeros;
    node.name = name_ + ".zeros";
    node.place = this->node().place;
    node.results = {type};
    return {graph_.add_node(std::move(node), {}), 0};
  }

  void give(uint32_t slot, Value gradient) override {
    if (wanted(slot)) accumulate(operand(slot), gradient);
  }

  Value mean_flag() override { return add_input(graph_, "mean", {ir::DType::F64, {}}); }
  void replace_result(uint32_t index, Value value) override { graph_.replace_uses({current_, index}, value); }
  Graph& graph() override { return graph_; }

 private:
  /// Its rule knows its own upstream gradient.
  static bool is_loss(OpKind op) { return op == OpKind::LinearLoss || op == OpKind::AddBalance; }

  bool receives(NodeId id) const {
    const auto first = gradients_.lower_bound({id, 0});
    return first != gradients_.end() && first->first.node == id;
  }

  /// A parameter's contributions stay apart: each is added to what the model keeps.
  void accumulate(Value value, Value gradient) {
    if (graph_.node(value.node).op == OpKind::Param) {
      of_parameters_[value.node].push_back(gradient);
      return;
    }
    Value& sum = gradients_[value];
    if (!sum.valid()) {
      sum = gradient;
      return;
    }
    const Node& producer = graph_.node(value.node);
    sum = {graph_.add(OpKind::Add, {sum, gradient}, {}, producer.name + ".sum", producer.place), 0};
  }

  Graph& graph_;
  const std::vector<bool> leads_to_wanted_;
  std::map<Value, Value> gradients_;
  std::map<NodeId, std::vector<Value>> of_parameters_;
  NodeId current_;
  std::string name_;  // of the current node
};

struct Leaves {
  std::vector<NodeId> parameters, inputs, tapped;  // tapped: no leaves, but their gradients are wanted as such
  std::vector<NodeId> all() const {
    std::vector<NodeId> list = parameters;
    list.insert(list.end(), inputs.begin(), inputs.end());
    list.insert(list.end(), tapped.begin(), tapped.end());
    return list;
  }
};

Leaves wanted_leaves(const Graph& graph, bool inputs_wanted) {
  Leaves leaves;
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::Param) leaves.parameters.push_back(id);
    if (node.op == OpKind::Input && inputs_wanted && node.results[0].dtype == graph.real)
      leaves.inputs.push_back(id);
  }
  for (const ir::Output& output : graph.outputs) {
    if (ir::is_tap(output.name)) leaves.tapped.push_back(output.value.node);
  }
  return leaves;
}

/// grads:NAME = what the model keeps + the contributions, one after the other, in the storage of what it
/// keeps.
void keep_gradient(Graph& graph, NodeId parameter, const std::vector<Value>& contributions) {
  const Node node = graph.node(parameter);
  const std::string name = node.attributes.text("name");
  Value kept = add_state(graph, "grads", name, node.results[0]);
  for (Value contribution : contributions) {
    const NodeId sum = graph.add(OpKind::Add, {kept, contribution}, {}, "grads." + name, node.place);
    graph.edit(sum).donates = 0;
    kept = {sum, 0};
  }
  graph.outputs.push_back({"grads:" + name, kept});
}

/// tap_grad:NAME of the taps whose values the backward comes by. Weights of attention have none: they are no values on
/// the way to the loss, but computed beside it.
void show_gradients(Graph& graph, const Walk& walk) {
  const std::vector<ir::Output> outputs = graph.outputs;
  for (const ir::Output& output : outputs) {
    if (!ir::is_tap(output.name)) continue;
    const Value gradient = walk.gradient_of(output.value);
    if (gradient.valid())
      graph.outputs.push_back({std::string(ir::kTapGradient).append(ir::tapped_name(output.name)), gradient});
  }
}

void differentiate_entry(ir::Entry& entry, PassContext& context) {
  Graph& graph = entry.graph;
  const bool from_loss = entry.name == "train";
  const size_t before = graph.node_count();
  const Leaves leaves = wanted_leaves(graph, !from_loss);
  Walk walk(graph, leaves.all());
  if (!from_loss) {
    const std::vector<ir::Output> outputs = std::exchange(graph.outputs, {});
    for (const ir::Output& output : outputs) {
      if (ir::is_tap(output.name)) {
        graph.outputs.push_back(output);
      } else {
        walk.seed(output.value, add_input(graph, "grad_" + output.name, graph.type(output.value)));
      }
    }
  }
  walk.run();
  for (NodeId id : leaves.parameters) {
    const std::vector<Value> contributions = walk.contributions(id);
    if (!contributions.empty()) keep_gradient(graph, id, contributions);
  }
  for (NodeId id : leaves.inputs) {
    const Value gradient = walk.gradient_of({id, 0});
    if (gradient.valid()) graph.outputs.push_back({"grad_" + graph.node(id).name, gradient});
  }
  show_gradients(graph, walk);
  graph.erase_unreachable();
  context.diagnostics.remark("differentiate", {},
                             "entry '" + entry.name + "': " + std::to_string(before) + " nodes became " +
                                 std::to_string(graph.node_count()) + " with their backward");
}

/// A vjp all of whose gradients have been pruned has no output but taps.
bool has_backward(const Graph& graph) {
  bool taps_alone = true;
  for (const ir::Output& output : graph.outputs) {
    if (output.name.starts_with("grad") || ir::is_tap_gradient(output.name)) return true;
    taps_alone = taps_alone && ir::is_tap(output.name);
  }
  return taps_alone;
}

}  // namespace

bool differentiate(ir::Module& module, PassContext& context) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    if ((entry.name != "train" && entry.name != "vjp") || has_backward(entry.graph)) continue;
    differentiate_entry(entry, context);
    changed = true;
  }
  return changed;
}

}  // namespace tfc::passes
