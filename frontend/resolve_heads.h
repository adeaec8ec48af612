// [head] and [loss], or [head.NAME]: what stands on the stack, and what is minimised.
#pragma once

#include "frontend/check_keys.h"
#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Fills in `heads`; [model] and [embedding] have been resolved before.
void resolve_heads(const Document& document, const KeyCheck& keys, Description& description,
                   ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
