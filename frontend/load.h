// TOML file -> checked Description: reading, `extends`, `--set`, every check of keys, ranges and meaning.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/description.h"
#include "ir/diagnostic.h"

namespace tfc::frontend {

/// What a command line says over a description.
struct Override {
  enum class Kind { Set, Tap, Edit };
  Kind kind = Kind::Set;
  std::string text;  // "model.layers=2" (the value is TOML, a bare word a string), or one more glob of [debug] taps or edits
};

/// The description in the file `path`, overridden in the order given. Empty when there was an error: `diagnostics` has
/// all of them. "-" reads standard input.
std::optional<Description> load_description(const std::string& path, const std::vector<Override>& overrides,
                                            ir::Diagnostics& diagnostics);

/// The same from memory. `file.name` is what messages print, its stem the model's default name, and its
/// folder where `extends` looks.
std::optional<Description> load_description(std::shared_ptr<const ir::SourceFile> file,
                                            const std::vector<Override>& overrides,
                                            ir::Diagnostics& diagnostics);

/// Reads a whole file ("-": standard input). Null, and why in `error`, when it cannot be read or is too
/// large.
std::shared_ptr<const ir::SourceFile> read_source(const std::string& path, std::string& error);

}  // namespace tfc::frontend
