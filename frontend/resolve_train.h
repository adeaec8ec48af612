// [train]: what is frozen, and what the backward computes again.
#pragma once

#include "frontend/description.h"
#include "frontend/scope.h"

namespace tfc::frontend {

std::vector<FreezePattern> resolve_freeze(const Scope& train);
RecomputeSettings resolve_recompute(const Scope& train, ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
