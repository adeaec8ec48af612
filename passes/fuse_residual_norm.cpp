#include "passes/fuse_residual_norm.h"

#include "ir/algorithms.h"
#include "passes/fuse_nodes.h"
#include "passes/rewrite_entries.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

bool is_norm(OpKind op) { return op == OpKind::LayerNorm || op == OpKind::RmsNorm; }
bool is_norm_grad(OpKind op) { return op == OpKind::LayerNormGrad || op == OpKind::RmsNormGrad; }

bool is_dropout(const Graph& graph, Value value) { return graph.node(value.node).op == OpKind::Dropout; }

/// The norm's results, then the sum where others read it. What is added may be dropped on the way.
bool fuse_forward(Graph& graph, NodeId norm) {
  const Value sum = graph.operand(norm, 0);
  if (graph.node(sum.node).op != OpKind::Residual || !run_together(graph, sum.node, norm)) return false;
  std::vector<Value> results;
  for (uint32_t i = 0; i < graph.node(norm).results.size(); ++i) results.push_back({norm, i});
  if (is_output(graph, sum) || graph.uses(sum).size() > 1) results.push_back(sum);
  std::vector<NodeId> nodes;
  for (uint32_t slot = 1; slot < graph.operand_count(sum.node); ++slot) {
    const Value term = graph.operand(sum.node, slot);
    const bool own = is_dropout(graph, term) && only_reader(graph, term) == sum.node;
    if (own && run_together(graph, term.node, norm)) nodes.push_back(term.node);
  }
  nodes.insert(nodes.end(), {sum.node, norm});
  fuse_nodes(graph, nodes, results, "residual_norm",
             graph.node(sum.node).name + "+" + std::string(ir::info(graph.node(norm).op).text));
  return true;
}

/// A dropout that reads the value, at the same time; invalid where there is none.
NodeId dropped_copy(const Graph& graph, Value value) {
  for (const ir::Use& use : graph.uses(value)) {
    const bool drops = graph.node(use.node).op == OpKind::Dropout && use.slot == 0;
    if (drops && run_together(graph, value.node, use.node)) return use.node;
  }
  return {};
}

/// norm_grad, and a dropped copy of dx: what goes on, dx and the gradients of gamma and beta, then what goes into the
/// sub-layer before.
bool fuse_dropped(Graph& graph, NodeId grad) {
  const NodeId dropout = dropped_copy(graph, {grad, 0});
  if (!dropout.valid()) return false;
  std::vector<Value> results;
  for (uint32_t i = 0; i < graph.node(grad).results.size(); ++i) results.push_back({grad, i});
  results.push_back({dropout, 0});
  fuse_nodes(graph, {grad, dropout}, results, "norm_grad", graph.node(grad).name + "+dropout");
  return true;
}

/// add(g, norm_grad): the sum, then the gradients of gamma and beta, and a dropped copy of the sum.
bool fuse_backward(Graph& graph, NodeId add) {
  if (graph.node(add).donates >= 0) return false;
  for (uint32_t slot : {1u, 0u}) {
    const Value dx = graph.operand(add, slot);
    if (!is_norm_grad(graph.node(dx.node).op) || dx.result != 0 || only_reader(graph, dx) != add) continue;
    if (graph.operand(add, 1 - slot).node == dx.node) continue;
    std::vector<Value> results = {{add, 0}};
    for (uint32_t i = 1; i < graph.node(dx.node).results.size(); ++i) results.push_back({dx.node, i});
    std::vector<NodeId> nodes = {dx.node, add};
    if (const NodeId dropout = dropped_copy(graph, {add, 0}); dropout.valid()) {
      nodes.push_back(dropout);
      results.push_back({dropout, 0});
    }
    fuse_nodes(graph, nodes, results, "norm_grad", graph.node(dx.node).name + "+sum");
    return true;
  }
  return false;
}

}  // namespace

bool fuse_residual_norm(ir::Module& module, PassContext& context) {
  const char* const what = "sums are made and normalised in one pass";
  return rewrite_entries(module, context, "fuse-residual-norm", what, [](Graph& graph) {
    size_t fused = 0;
    const std::vector<NodeId> order = ir::topological_order(graph);
    for (NodeId id : order) {
      if (!graph.alive(id)) continue;
      if (is_norm(graph.node(id).op))
        fused += fuse_forward(graph, id);
      else if (graph.node(id).op == OpKind::Add)
        fused += fuse_backward(graph, id);
    }
    for (NodeId id : order) {
      if (graph.alive(id) && is_norm_grad(graph.node(id).op)) fused += fuse_dropped(graph, id);
    }
    return fused;
  });
}

}  // namespace tfc::passes
