// TOML text -> Tree: the only part of the compiler that knows toml11.
#pragma once

#include <memory>
#include <string>

#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Every syntax error is reported; what could be read is returned.
Document read_toml(const std::shared_ptr<const ir::SourceFile>& file, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
