// --emit=report: what a model costs, in parameters, bytes and FLOPs, and what the passes did.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"
#include "passes/pass.h"

namespace tfc::tools {

/// `planned`: phase planned. `records`: what run_pipeline told, empty for dumps.
std::string report_text(const ir::Module& planned, const ir::Point& point,
                        const std::vector<passes::PassRecord>& records);

/// FLOPs of one forward by the usual convention: 2 x matmul weights x tokens + 4 x B x T x S x (H*E) for each
/// attention, counted in full also under a causal mask. A training step is three forwards.
double forward_flops(const ir::Module& planned, const ir::Point& point);

}  // namespace tfc::tools
