// A tree of valid keys -> Description: defaults, and all that keys mean together.
#pragma once

#include <optional>
#include <string>

#include "frontend/check_keys.h"
#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// `stem`: the model's name where none is written. Errors are reported; what is returned is then not to be
/// used.
Description resolve(const Document& document, const KeyCheck& keys, const std::string& stem,
                    ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
