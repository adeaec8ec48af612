// [run]: what `transformerc train` does.
#pragma once

#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Also reports tasks that do not fit the model. The model's own settings must be in `description` already.
RunSettings resolve_run(const Tree& root, const Description& description, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
