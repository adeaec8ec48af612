// Every key of a description against the table of keys: unknown ones, types, ranges, and what is not
// supported yet.
#pragma once

#include <set>
#include <string>

#include "frontend/toml_tree.h"

namespace tfc::frontend {

struct KeyCheck {
  /// Keys ("model.d_model") that an error has already named as what was probably meant: that they are missing
  /// is no further news.
  std::set<std::string> meant;
};

/// Reports all that is wrong and marks it refused.
KeyCheck check_keys(Tree& root, ir::Diagnostics& diagnostics);

/// [A-Za-z_][A-Za-z0-9_]*
bool is_identifier(std::string_view name);

}  // namespace tfc::frontend
