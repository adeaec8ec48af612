#include "passes/expand.h"

#include "ir/check.h"
#include "passes/expand/expander.h"
#include "passes/expand/freeze.h"
#include "passes/expand/lora.h"

namespace tfc::passes {

bool expand(ir::Module& module, PassContext& context) {
  ir::Entry* model = module.entry("model");
  TFC_CHECK(model, "expand expects an entry named model");
  Expander expander(module, model->graph);
  expander.run();
  model->graph = std::move(expander.result);
  settle_lora(module, context);
  apply_freezes(module, context);
  ir::lay_out_parameters(module);
  context.diagnostics.remark("expand", {},
                             std::to_string(module.parameters.size()) + " parameters, " +
                                 std::to_string(module.parameter_count()) + " numbers in one block of " +
                                 std::to_string(module.parameter_block()));
  return true;
}

}  // namespace tfc::passes
