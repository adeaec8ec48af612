#include "ir/cost.h"

namespace tfc::ir {
namespace {

const Type& operand_type(const Graph& graph, NodeId id, uint32_t slot) {
  return graph.type(graph.operand(id, slot));
}

/// Products with a weight f[N,K] over R rows: 2 R N K.
Dim product_flops(const Dim& rows, const Type& weight) { return Dim(2) * rows * weight.elements(); }

/// q k and p v, all keys for all queries: 4 B T S H E.
Dim attention_flops(const Type& q, const Type& k) { return Dim(4) * q.elements() * k.shape[1]; }

/// Each row meets the weight of one of X experts; `starts` has X + 1 elements.
Dim expert_flops(const Dim& rows, const Type& weight, const Type& starts) {
  const int64_t experts = *starts.shape[0].constant() - 1;
  return Dim(2) * rows * Dim(*weight.shape[0].constant() / experts) * weight.shape[1];
}

Dim flops(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  switch (node.op) {
    case OpKind::Linear:
    case OpKind::LinearDx:
      return product_flops(operand_type(graph, id, 0).rows(), operand_type(graph, id, 1));
    case OpKind::LinearDw:
      return product_flops(operand_type(graph, id, 0).rows(), node.results[0]);
    case OpKind::ExpertLinear:
      return expert_flops(operand_type(graph, id, 0).rows(), operand_type(graph, id, 1), operand_type(graph, id, 3));
    case OpKind::ExpertLinearDx:
      return expert_flops(operand_type(graph, id, 0).rows(), operand_type(graph, id, 1), operand_type(graph, id, 2));
    case OpKind::ExpertLinearDw:
      return expert_flops(operand_type(graph, id, 0).rows(), node.results[0], operand_type(graph, id, 2));
    case OpKind::LinearLoss:
    case OpKind::LinearLogprob:
      return product_flops(operand_type(graph, id, 0).rows(), operand_type(graph, id, 1));
    case OpKind::LinearLossGrad:
      return Dim(3) * product_flops(operand_type(graph, id, 0).rows(), operand_type(graph, id, 1));
    case OpKind::Attention:
      return attention_flops(operand_type(graph, id, 0), operand_type(graph, id, 1));
    case OpKind::AttentionGrad:  // five products where the forward has two
      return Dim(10) * operand_type(graph, id, 1).elements() * operand_type(graph, id, 2).shape[1];
    case OpKind::Fused: {
      Dim sum;
      for (const NodeId inner : node.body->nodes()) sum = sum + flops(*node.body, inner);
      return sum;
    }
    default:
      break;
  }
  if (!is_primitive(node.op) || node.op == OpKind::Split || node.results.empty()) return 0;
  return node.results[0].elements();  // a few operations for each element: products are what counts
}

}  // namespace

Cost node_cost(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool runs = is_primitive(node.op) || node.op == OpKind::Fused;
  if (!runs || node.op == OpKind::Split) return {};
  Cost cost{flops(graph, id), 0};
  for (const Value operand : graph.operands(id))
    if (operand.valid()) cost.bytes = cost.bytes + graph.type(operand).bytes();
  for (const Type& type : node.results) cost.bytes = cost.bytes + type.bytes();
  return cost;
}

}  // namespace tfc::ir
