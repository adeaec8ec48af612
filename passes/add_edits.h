// What the description edits goes through an `edit`.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// readers(v)  ->  readers(edit(v, "NAME" of edits, "how:NAME" of edits, mask?)) for each value v that a glob of the
/// module's edits names, by the names of taps. Taps of v are among the readers: they show what was made of it. Rows of
/// padding are left alone, for nobody is to read what stands there. A glob without a value is an error, and so is one that
/// names only what cannot be changed on its way: the answers of heads, whose losses are computed together with their
/// product; weights of attention, which are computed for taps; tables of positions, which decoding makes by row.
/// Before: primitives, projections joined, taps are outputs.   After: the module has no edits of its own any more.
/// Why: before entries part, so that each has the edits of the values that it computes, and differentiates them.
bool add_edits(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
