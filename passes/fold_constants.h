// Operations that need not run.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Folds what is known at compile time: scale by 1, adding zeros, masking twice, splits of concats and
/// concats of splits.
/// Before and after: any graph of primitives.   After: none of these patterns remains.
/// Why: settings at their neutral value and derivative rules leave such nodes; each would be a trip through
/// memory. Two factors are not multiplied, which would round once instead of twice: no bit depends on the -O
/// level. A factor of 0 is not folded: 0 * NaN is NaN, and non-finite values are not hidden.
bool fold_constants(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
