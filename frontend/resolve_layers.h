// Blocks, patterns and layer overrides -> what every layer is.
#pragma once

#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Fills description.defaults and its lists of layers; `counts`: layers of the (encoder's and decoder's)
/// stack, -1 when unknown. The other settings must be there already. `damaged`: some of the text could not be
/// read.
void resolve_layers(const Tree& root, const std::vector<int64_t>& counts, Description& description,
                    bool damaged, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
