#include "passes/accumulate_in_place.h"

#include "ir/algorithms.h"
#include "passes/fuse_nodes.h"
#include "passes/rewrite_entries.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// Can the gradient's kernel add to what is in memory?
bool can_accumulate(const Graph& graph, Value gradient, Value kept) {
  switch (graph.node(gradient.node).op) {
    case OpKind::LinearDw:
    case OpKind::ColumnSum:
    case OpKind::ExpertLinearDw:
    case OpKind::ExpertColumnSum:
    case OpKind::EmbeddingGrad:
      return true;
    case OpKind::LinearLossGrad:  // dw; its other results are needed before later contributions are
                                          // made
      return gradient.result == 3 && graph.node(kept.node).op == OpKind::State;
    default:
      return false;
  }
}

/// add(kept, gradient) that takes over `kept`
bool fuse_accumulation(Graph& graph, NodeId add) {
  if (graph.node(add).op != OpKind::Add || graph.node(add).donates != 0) return false;
  const Value gradient = graph.operand(add, 1);
  if (!can_accumulate(graph, gradient, graph.operand(add, 0)) || only_reader(graph, gradient) != add)
    return false;
  std::vector<Value> results = {{add, 0}};
  for (uint32_t i = 0; i < graph.node(gradient.node).results.size(); ++i) {
    if (i != gradient.result) results.push_back({gradient.node, i});
  }
  fuse_nodes(graph, {gradient.node, add}, results, "accumulate", graph.node(gradient.node).name + "+kept");
  return true;
}

}  // namespace

bool accumulate_in_place(ir::Module& module, PassContext& context) {
  const char* const what = "gradients are added to memory as they are made";
  return rewrite_entries(module, context, "accumulate-in-place", what, [](Graph& graph) {
    size_t fused = 0;
    for (NodeId id : ir::topological_order(graph)) {
      if (graph.alive(id)) fused += fuse_accumulation(graph, id);
    }
    return fused;
  });
}

}  // namespace tfc::passes
