// The texts that make up a description: the file, what it extends, and the command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/load.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

struct Sources {
  Document document;               // all of them in one tree; later ones override key by key
  std::vector<std::string> files;  // read, the description first
};

Sources gather_sources(const std::shared_ptr<const ir::SourceFile>& file,
                       const std::vector<Override>& overrides, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
