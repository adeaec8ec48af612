// TOML's numbers, read so that nothing is clamped in silence.
#pragma once

#include <string>
#include <string_view>

#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Reads a bare word that is no string, array or table: number, boolean or date. Sets kind and value of
/// `tree`. False: `error` says why it is none of these.
bool read_scalar(std::string_view word, Tree& tree, std::string& error);

}  // namespace tfc::frontend
