// The settings of one attention, feed-forward, norm or residual node, from all tables that may hold them.
#pragma once

#include "frontend/description.h"
#include "frontend/scope.h"

namespace tfc::frontend {

/// Reports what does not fit. `self`: attends to its own input, so that rope turns it.
AttentionSettings resolve_attention(const Scope& scope, const Description& description, bool self,
                                    ir::Diagnostics& diagnostics);
FfnSettings resolve_ffn(const Scope& scope, const Description& description, ir::Diagnostics& diagnostics);
NormSettings resolve_norm(const Scope& scope, ir::Diagnostics& diagnostics);
ResidualSettings resolve_residual(const Scope& scope);

}  // namespace tfc::frontend
