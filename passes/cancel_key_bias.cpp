#include "passes/cancel_key_bias.h"

#include "ir/check.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// An attention's, or a sum over attentions that share their keys.
bool is_key_gradient(const Graph& graph, Value value) {
  if (graph.node(value.node).op == OpKind::Add)
    return is_key_gradient(graph, graph.operand(value.node, 0)) &&
           is_key_gradient(graph, graph.operand(value.node, 1));
  return graph.node(value.node).op == OpKind::AttentionGrad && value.result == 1;
}

int64_t width_of(const Graph& graph, Value value) {
  const auto width = graph.type(value).width().constant();
  TFC_CHECK(width, "the width of an attention's gradients is not a number");
  return *width;
}

/// The columns of `value` that are an attention's key gradient: {from, to}, or empty.
std::vector<int64_t> key_columns(const Graph& graph, Value value) {
  if (is_key_gradient(graph, value)) return {0, width_of(graph, value)};
  if (graph.node(value.node).op != OpKind::Concat) return {};
  int64_t from = 0;
  for (Value part : graph.operands(value.node)) {
    const int64_t to = from + width_of(graph, part);
    if (is_key_gradient(graph, part)) return {from, to};
    from = to;
  }
  return {};
}

}  // namespace

bool cancel_key_bias(ir::Module& module, PassContext& context) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    for (NodeId id : graph.nodes()) {
      if (graph.node(id).op != OpKind::ColumnSum || graph.node(id).attributes.has("cancelled")) continue;
      const std::vector<int64_t> range = key_columns(graph, graph.operand(id, 0));
      if (range.empty()) continue;
      graph.edit(id).attributes.set("cancelled", range);
      context.diagnostics.remark("cancel-key-bias", graph.node(id).place,
                                 "the gradient of the keys' bias is exactly zero in '" + graph.node(id).name + "'");
      changed = true;
    }
  }
  return changed;
}

}  // namespace tfc::passes
