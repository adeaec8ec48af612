// Description -> TOML with every default, pattern and override written out (--emit=toml).
#pragma once

#include <string>

#include "frontend/description.h"

namespace tfc::frontend {

/// Loads again to an equal description. Layers that differ from the tables are listed by blocks and patterns,
/// so no [layers.X] remains.
std::string resolved_toml(const Description& description);

}  // namespace tfc::frontend
