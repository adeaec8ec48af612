// Which parameters the description freezes.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Marks the parameters that the module's freezes name, and takes the freezes off the module. A pattern is
///   "embedding"             all that feeds the first layer: tables, the norm after them
///   a name or its beginning, up to a dot: "layers.3", "head", "layers.0.attn"; a part "0-5" is a range of
///                           layers; "final_norm" is that of either stack
///   a glob                  of whole names: "*.bias", "layers.*.norm?.*"
/// One that names no parameter is an error at its place. Parameters that are one matrix with others
/// (q, k, v; gate, up) leave it where some of them alone are frozen.
void apply_freezes(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
