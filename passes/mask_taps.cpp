#include "passes/mask_taps.h"

#include "ir/taps.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// u8 for each row of the value; invalid where its rows are no tokens, or the model has no mask.
Value mask_of(const Graph& graph, Value value) {
  const ir::Type& type = graph.type(value);
  if (type.rank() != 3 || graph.node(value.node).op == OpKind::MaskRows) return {};
  const NodeId mask = graph.find(type.shape[1] == ir::Dim(ir::Symbol::S) ? "src_mask" : "mask");
  if (!mask.valid() || graph.node(mask).op != OpKind::Input) return {};
  const ir::Type& rows = graph.type({mask, 0});
  return rows.shape[0] == type.shape[0] && rows.shape[1] == type.shape[1] ? Value{mask, 0} : Value{};
}

}  // namespace

bool mask_taps(ir::Module& module, PassContext&) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    for (ir::Output& output : graph.outputs) {
      if (!ir::is_tap(output.name)) continue;
      const Value value = output.value, mask = mask_of(graph, value);
      if (!mask.valid()) continue;
      const ir::Node node = graph.node(value.node);
      const NodeId masked = graph.add(OpKind::MaskRows, {value, mask}, {}, node.name + ".shown", node.place);
      output.value = {masked, 0};
      changed = true;
    }
  }
  return changed;
}

}  // namespace tfc::passes
