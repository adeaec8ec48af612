#include "passes/accumulate_in_place.h"

#include "ir/algorithms.h"
#include "passes/fuse_nodes.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// The kernel that can add its result to what is in memory, or "".
std::string_view accumulating_kernel(OpKind op) {
  if (op == OpKind::LinearDw) return "product";
  if (op == OpKind::ColumnSum) return "column_sum";
  return "";
}

/// add(kept, gradient) that takes over `kept`
bool fuse_accumulation(Graph& graph, NodeId add) {
  if (graph.node(add).op != OpKind::Add || graph.node(add).donates != 0) return false;
  const Value gradient = graph.operand(add, 1);
  const std::string_view kernel = accumulating_kernel(graph.node(gradient.node).op);
  if (kernel.empty() || only_reader(graph, gradient) != add) return false;
  fuse_nodes(graph, {gradient.node, add}, {{add, 0}}, kernel, graph.node(gradient.node).name + "+kept");
  return true;
}

}  // namespace

bool accumulate_in_place(ir::Module& module, PassContext& context) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    size_t fused = 0;
    for (NodeId id : ir::topological_order(entry.graph)) {
      if (entry.graph.alive(id)) fused += fuse_accumulation(entry.graph, id);
    }
    if (fused == 0) continue;
    changed = true;
    context.diagnostics.remark("accumulate-in-place", {},
                               "entry '" + entry.name + "': " + std::to_string(fused) +
                                   " gradients are added to memory as they are made");
  }
  return changed;
}

}  // namespace tfc::passes
