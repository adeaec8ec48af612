// What the description taps becomes an output.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Matches the module's taps with the names of its values: of a node of reals its own name (its first result), of a
/// part of a joined product the name that it had ("layers.0.attn.q"), and of each attention PREFIX the weights,
/// "PREFIX.weights", for which its log-sum stands until derive-entries. Each match becomes the output "tap:NAME"; a
/// glob without one is an error.
/// Before: primitives, projections joined.   After: the module has no taps of its own any more.
/// Why: as an output a value outlives every pass; they respect outputs.
bool add_taps(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
