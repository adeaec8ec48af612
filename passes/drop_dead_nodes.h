// Dead code.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Erases every node that no output needs.
/// Before and after: any graph.
/// Why: rewrites leave behind what they replace, and an entry needs only a part of the model.
bool drop_dead_nodes(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
