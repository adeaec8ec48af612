#include "passes/drop_dead_nodes.h"

namespace tfc::passes {

bool drop_dead_nodes(ir::Module& module, PassContext& context) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    const size_t dropped = entry.graph.erase_unreachable();
    if (dropped == 0) continue;
    changed = true;
    context.diagnostics.remark(
        "drop-dead-nodes", {},
        "entry '" + entry.name + "': " + std::to_string(dropped) + " nodes that no output needs");
  }
  return changed;
}

}  // namespace tfc::passes
