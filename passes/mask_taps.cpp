#include "passes/mask_taps.h"

#include "ir/taps.h"
#include "passes/row_mask.h"

namespace tfc::passes {
using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

bool mask_taps(ir::Module& module, PassContext&) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    for (ir::Output& output : graph.outputs) {
      if (!ir::is_tap(output.name)) continue;
      const Value value = output.value, mask = row_mask(graph, graph.type(value));
      if (!mask.valid() || graph.node(value.node).op == OpKind::MaskRows) continue;
      const ir::Node node = graph.node(value.node);
      const NodeId masked = graph.add(OpKind::MaskRows, {value, mask}, {}, node.name + ".shown", node.place);
      output.value = {masked, 0};
      changed = true;
    }
  }
  return changed;
}

}  // namespace tfc::passes
