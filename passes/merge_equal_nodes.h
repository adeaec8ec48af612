// Common subexpressions.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Merges nodes that compute the same thing: same operation, attributes and operands. Values are pure, so the
/// first one serves all users. Nodes that take over storage are left alone.
/// Before and after: any graph. Before the differentiation it is mandatory: two equal products would each give
/// their weight a gradient, where one gives it the gradient of their sum, which rounds otherwise.
/// Why: blocks expand on their own (the layers of a shared block all project the memory with the same weights), and
/// derivative rules do not look around.
bool merge_equal_nodes(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
