// Blocks, patterns and layer overrides -> what every layer is.
#pragma once

#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Fills description.defaults and its lists of layers; `counts`: layers of the (encoder's and decoder's) stack, -1
/// when unknown. The other settings must be there already.
void resolve_layers(const Tree& root, const std::vector<int64_t>& counts, Description& description,
                    ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
