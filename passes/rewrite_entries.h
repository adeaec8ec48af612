// How a pass that rewrites the graph of each entry, and counts what it did, is run.
#pragma once

#include <functional>
#include <string_view>

#include "passes/pass.h"

namespace tfc::passes {

/// `rewrite` returns how much it changed. Each entry with a change gets a remark, "entry 'train': 12 WHAT". True: there
/// was one.
bool rewrite_entries(ir::Module& module, PassContext& context, std::string_view pass, std::string_view what,
                     const std::function<size_t(ir::Graph&)>& rewrite);

}  // namespace tfc::passes
