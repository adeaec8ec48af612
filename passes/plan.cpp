#include "passes/plan.h"

#include "passes/plan/cache_layout.h"
#include "passes/plan/entry_planner.h"

namespace tfc::passes {

bool plan(ir::Module& module, PassContext& context) {
  const CacheLayout cache = cache_layout(module);
  for (ir::Entry& entry : module.entries) {
    entry.plan = EntryPlanner(module, cache, entry.graph, context.options.point).run();
    context.diagnostics.remark("plan", {},
                               "entry '" + entry.name + "': " + std::to_string(entry.plan->records.size()) +
                                   " records, " + std::to_string(entry.plan->buffers.size()) + " buffers");
  }
  return true;
}

}  // namespace tfc::passes
