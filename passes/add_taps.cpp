#include "passes/add_taps.h"

#include "ir/check.h"
#include "ir/taps.h"
#include "passes/named_values.h"

namespace tfc::passes {

bool add_taps(ir::Module& module, PassContext& context) {
  if (module.taps.empty()) return false;
  ir::Entry* model = module.entry("model");
  TFC_CHECK(model, "add-taps expects an entry named model");
  ir::Graph& graph = model->graph;
  const std::vector<NamedValue> tapped =
      values_named_by(module.taps, tappable_values(graph), "taps", context.diagnostics);
  for (const NamedValue& named : tapped) graph.outputs.push_back({std::string(ir::kTap) + named.name, named.value});
  context.diagnostics.remark("add-taps", module.taps.front().place,
                             std::to_string(tapped.size()) + " values are shown to callers");
  module.taps.clear();
  return true;
}

}  // namespace tfc::passes
