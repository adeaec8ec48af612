// [train]: what is frozen, what is adapted, and what the backward computes again.
#pragma once

#include "frontend/description.h"
#include "frontend/scope.h"

namespace tfc::frontend {

/// A string or a list of strings; none where the key is not there.
std::vector<NamePattern> resolve_patterns(const Scope& table, std::string_view key);
LoraSettings resolve_lora(const Scope& train, ir::Diagnostics& diagnostics);
RecomputeSettings resolve_recompute(const Scope& train, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
