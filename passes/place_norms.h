// Where the normalisations of ordinary layers stand.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Rewrites block.layer into attention, ffn, norm and residual blocks by the node list of its placement,
/// decides `auto`, and settles which final norms stay.
/// Before: layers as written.   After: no block.layer; norms stand where they will run.
/// Why here: a placement is a choice between three small graphs, and the rest of the compiler should not know
/// of it. A placement that was written is kept; blocks whose nodes were written out are not touched.
bool place_norms(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
