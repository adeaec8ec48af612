#include "passes/rewrite_entries.h"

namespace tfc::passes {

bool rewrite_entries(ir::Module& module, PassContext& context, std::string_view pass, std::string_view what,
                     const std::function<size_t(ir::Graph&)>& rewrite) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    const size_t count = rewrite(entry.graph);
    if (count == 0) continue;
    changed = true;
    context.diagnostics.remark(
        pass, {}, "entry '" + entry.name + "': " + std::to_string(count) + " " + std::string(what));
  }
  return changed;
}

}  // namespace tfc::passes
