// [train]: what is frozen, what is adapted, and what the backward computes again.
#pragma once

#include "frontend/description.h"
#include "frontend/scope.h"

namespace tfc::frontend {

std::vector<FreezePattern> resolve_freeze(const Scope& train);
LoraSettings resolve_lora(const Scope& train, ir::Diagnostics& diagnostics);
RecomputeSettings resolve_recompute(const Scope& train, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
