#include "passes/fuse_epilogues.h"

#include "ir/algorithms.h"
#include "passes/fuse_nodes.h"
#include "passes/rewrite_entries.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

bool made_by(const Graph& graph, Value value, OpKind op) {
  return value.valid() && graph.node(value.node).op == op;
}

bool is_product(const Graph& graph, Value value) {
  for (const OpKind op : {OpKind::Linear, OpKind::LinearDx, OpKind::ExpertLinear, OpKind::ExpertLinearDx}) {
    if (made_by(graph, value, op)) return true;
  }
  return false;
}

/// The dropout that alone reads the value, and at the same time; invalid where there is none.
NodeId only_dropout(const Graph& graph, Value value) {
  const NodeId reader = only_reader(graph, value);
  const bool drops = reader.valid() && graph.node(reader).op == OpKind::Dropout;
  return drops && run_together(graph, value.node, reader) ? reader : NodeId{};
}

/// A value and what went through dropout before it, a product that nobody else reads: [product, dropout?]; empty where
/// it is something else.
std::vector<NodeId> product_chain(const Graph& graph, Value value, NodeId reader) {
  if (only_reader(graph, value) != reader) return {};
  if (is_product(graph, value)) return {value.node};
  if (!made_by(graph, value, OpKind::Dropout)) return {};
  const Value inner = graph.operand(value.node, 0);
  if (!is_product(graph, inner) || only_dropout(graph, inner) != value.node) return {};
  return {inner.node, value.node};
}

/// activation(linear(...)), and the dropout of it -> the last of them and, where others read it, what went in.
bool fuse_activation(Graph& graph, NodeId activation) {
  const Value inner = graph.operand(activation, 0);
  const bool forward = made_by(graph, inner, OpKind::Linear) || made_by(graph, inner, OpKind::ExpertLinear);
  if (!forward || !run_together(graph, inner.node, activation)) return false;
  std::vector<NodeId> nodes = {inner.node, activation};
  if (const NodeId dropout = only_dropout(graph, {activation, 0}); dropout.valid()) nodes.push_back(dropout);
  std::vector<Value> results = {{nodes.back(), 0}};
  if (is_output(graph, inner) || graph.uses(inner).size() > 1) results.push_back(inner);
  fuse_nodes(graph, nodes, results, "product",
             graph.node(inner.node).name + "+" + graph.node(activation).attributes.text("kind"));
  return true;
}

/// dropout(product), unless a sum or a slope takes both along.
bool fuse_dropout(Graph& graph, NodeId dropout) {
  const Value inner = graph.operand(dropout, 0);
  if (!is_product(graph, inner) || only_dropout(graph, inner) != dropout) return false;
  fuse_nodes(graph, {inner.node, dropout}, {{dropout, 0}}, "product",
             graph.node(inner.node).name + "+dropout");
  return true;
}

/// residual(x, scale_columns(product)): LayerScale, and the dropout of it. The product is kept where the backward
/// reads it.
bool fuse_scaled_sum(Graph& graph, NodeId sum) {
  if (graph.node(sum).op != OpKind::Residual || graph.operand_count(sum) != 2) return false;
  std::vector<NodeId> nodes = {sum};
  Value scaled = graph.operand(sum, 1);
  if (made_by(graph, scaled, OpKind::Dropout) && only_reader(graph, scaled) == sum) {
    nodes.insert(nodes.begin(), scaled.node);
    scaled = graph.operand(scaled.node, 0);
  }
  if (!made_by(graph, scaled, OpKind::ScaleColumns) || only_reader(graph, scaled) != nodes.front()) return false;
  const Value product = graph.operand(scaled.node, 0);
  if (graph.operand(sum, 0) == product) return false;  // x is read from outside: not what is made here
  if (!made_by(graph, product, OpKind::Linear) || !run_together(graph, product.node, sum) ||
      !run_together(graph, scaled.node, nodes.front()) || !run_together(graph, nodes.front(), sum)) {
    return false;
  }
  std::vector<Value> results = {{sum, 0}};
  if (is_output(graph, product) || graph.uses(product).size() > 1) results.push_back(product);
  nodes.insert(nodes.begin(), {product.node, scaled.node});
  fuse_nodes(graph, nodes, results, "product", graph.node(product.node).name + "+sum");
  return true;
}

/// Operands of a sum at which a product may stand: of several branches the last, to which those before it are
/// added first; either of two.
std::vector<uint32_t> product_slots(const Graph& graph, NodeId sum) {
  const auto count = static_cast<uint32_t>(graph.operand_count(sum));
  if (count == 2) return {1, 0};
  if (count == 3) return {2, 1};
  return {count - 1};
}

/// residual(x, branches..., product) or add(x, product), where nobody else reads the product; it may have gone
/// through dropout.
bool fuse_sum(Graph& graph, NodeId sum) {
  const Node& node = graph.node(sum);
  if (node.donates >= 0) return false;
  if (fuse_scaled_sum(graph, sum)) return true;
  for (const uint32_t slot : product_slots(graph, sum)) {
    if (slot == 0 && node.op == OpKind::Residual && node.attributes.real("scale") != 1.0) continue;
    std::vector<NodeId> nodes = product_chain(graph, graph.operand(sum, slot), sum);
    if (nodes.empty() || !run_together(graph, nodes.front(), sum)) continue;
    const std::string name = graph.node(nodes.front()).name + "+sum";
    nodes.push_back(sum);
    fuse_nodes(graph, nodes, {{sum, 0}}, "product", name);
    return true;
  }
  return false;
}

/// The activation of x that is computed again for a weight's gradient alone, on which no gradient of an input waits.
NodeId activation_for_gradient(const Graph& graph, Value x, const std::string& kind) {
  for (const ir::Use& use : graph.uses(x)) {
    const Node& node = graph.node(use.node);
    if (node.op != OpKind::Activation || !node.late || node.attributes.text("kind") != kind) continue;
    const NodeId reader = only_reader(graph, {use.node, 0});
    if (!reader.valid()) continue;
    const Node& reads = graph.node(reader);
    const bool accumulates = reads.op == OpKind::Fused && reads.attributes.text("kernel") == "accumulate";
    if (accumulates || reads.op == OpKind::LinearDw || reads.op == OpKind::ExpertLinearDw) return use.node;
  }
  return {};
}

/// activation_grad(linear_dx(...), x), with the dropout between them, and the activation of x that has the same parts.
bool fuse_activation_grad(Graph& graph, NodeId grad) {
  std::vector<NodeId> nodes = product_chain(graph, graph.operand(grad, 0), grad);
  if (nodes.empty()) return false;
  const OpKind op = graph.node(nodes.front()).op;
  if (op != OpKind::LinearDx && op != OpKind::ExpertLinearDx) return false;
  const std::string name = graph.node(nodes.front()).name + "+slope";
  nodes.push_back(grad);
  std::vector<Value> results = {{grad, 0}};
  const NodeId activation =
      activation_for_gradient(graph, graph.operand(grad, 1), graph.node(grad).attributes.text("kind"));
  if (activation.valid()) {
    nodes.push_back(activation);
    results.push_back({activation, 0});
  }
  fuse_nodes(graph, nodes, results, "product", name);
  return true;
}

/// What a gate multiplies: activation(open) and up, in one slot each.
struct Gate {
  NodeId activation;
  Value open, up;
};

bool match_gate(const Graph& graph, NodeId multiply, Gate& gate) {
  const Value first = graph.operand(multiply, 0);
  if (!made_by(graph, first, OpKind::Activation)) return false;
  gate = {first.node, graph.operand(first.node, 0), graph.operand(multiply, 1)};
  return gate.up.node != first.node;
}

/// The derivative of multiply(activation(open), up):
///   dup = multiply(dy, activation(open))     dopen = activation_grad(multiply(dy, up), open)
/// as one node that computes the activation again. Returns false where the graph has no such pair.
bool fuse_gate_grad(Graph& graph, const Gate& gate) {
  NodeId dup, dopen;
  Value dy;
  for (const ir::Use& use : graph.uses({gate.activation, 0})) {
    if (graph.node(use.node).op == OpKind::Multiply && use.slot == 1)
      dup = use.node, dy = graph.operand(dup, 0);
  }
  for (const ir::Use& use : graph.uses(gate.open)) {
    if (graph.node(use.node).op == OpKind::ActivationGrad && use.slot == 1) dopen = use.node;
  }
  if (!dup.valid() || !dopen.valid()) return false;
  const Value inner = graph.operand(dopen, 0);
  if (!made_by(graph, inner, OpKind::Multiply) || graph.operand(inner.node, 0) != dy ||
      graph.operand(inner.node, 1) != gate.up || only_reader(graph, inner) != dopen) {
    return false;
  }
  const Node activation = graph.node(gate.activation);
  const NodeId again = graph.add(OpKind::Activation, {gate.open}, activation.attributes,
                                 activation.name + ".again", activation.place);
  graph.set_operand(dup, 1, {again, 0});
  fuse_nodes(graph, {inner.node, dopen, again, dup}, {{dopen, 0}, {dup, 0}}, "gate_grad",
             activation.name + ".grad");
  return true;
}

/// multiply(activation(open), up), and the dropout of it.
bool fuse_gate(Graph& graph, NodeId multiply) {
  Gate gate;
  if (!match_gate(graph, multiply, gate)) return false;
  fuse_gate_grad(graph, gate);
  if (only_reader(graph, {gate.activation, 0}) != multiply || !run_together(graph, gate.activation, multiply))
    return false;
  const std::string name = graph.node(multiply).name + ".fused";
  std::vector<NodeId> nodes = {gate.activation, multiply};
  if (const NodeId dropout = only_dropout(graph, {multiply, 0}); dropout.valid()) nodes.push_back(dropout);
  fuse_nodes(graph, nodes, {{nodes.back(), 0}}, "gate", name);
  return true;
}

bool fuse(Graph& graph, NodeId id) {
  switch (graph.node(id).op) {
    case OpKind::Activation:
      return fuse_activation(graph, id);
    case OpKind::Residual:
    case OpKind::Add:
      return fuse_sum(graph, id);
    case OpKind::ActivationGrad:
      return fuse_activation_grad(graph, id);
    case OpKind::Multiply:
      return fuse_gate(graph, id);
    default:
      return false;
  }
}

}  // namespace

bool fuse_epilogues(ir::Module& module, PassContext& context) {
  return rewrite_entries(module, context, "fuse-epilogues", "results are used where they are made", [](Graph& graph) {
    size_t fused = 0;
    const std::vector<NodeId> order = ir::topological_order(graph);
    for (NodeId id : order) {
      if (graph.alive(id)) fused += fuse(graph, id);
    }
    for (NodeId id : order) {  // where neither a sum nor a slope has taken a dropped product
      if (graph.alive(id) && graph.node(id).op == OpKind::Dropout) fused += fuse_dropout(graph, id);
    }
    return fused;
  });
}

}  // namespace tfc::passes
