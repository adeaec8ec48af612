// [embedding] patches, class_token: images in place of tokens.
#pragma once

#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// The patches of the description, whose [model] is resolved. Their number is the model's length: max_seq and
/// [shapes] seq are set by it.
void resolve_patches(const Tree& root, Description& description, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
