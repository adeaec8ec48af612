// The places of keys and values in a TOML text, and its syntax errors, as many as there are.
//
// toml11 gives keys no place, clamps numbers that do not fit, and stops at the first error; this scanner
// knows just enough of TOML's grammar to fill those gaps. It leaves the meaning of strings and dates to
// toml11.
#pragma once

#include <memory>
#include <string>

#include "frontend/toml_tree.h"

namespace tfc::frontend {

struct Scan {
  Tree root;              // kinds, places, numbers and booleans; strings are still empty
  std::string readable;   // the text, with what was wrong replaced by spaces, line for line
  bool damaged = false;   // there were errors
  bool hopeless = false;  // nothing can be read: not UTF-8, control characters
};

Scan scan_toml(const std::shared_ptr<const ir::SourceFile>& file, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
