// Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): which weights have one, and what then moves.
#pragma once

#include <string_view>

#include "passes/pass.h"

namespace tfc::passes {

/// Is there an adapter beside the weight of the linear of that name ("layers.0.attn.q")? Targets are globs of
/// such names, or ends of them: "q", "attn.q". Never where there are no adapters.
bool is_lora_target(const ir::Lora& lora, std::string_view linear);

/// What the product of an adapter's two matrices counts: alpha / rank.
inline double lora_scale(const ir::Lora& lora) { return lora.alpha / static_cast<double>(lora.rank); }

/// A begins as nn.Linear does, B at zero: at first an adapter changes nothing.
ir::Init lora_a_init(int64_t in);

/// After the parameters have been made: freezes all but the adapters, notes their scale among the facts, and
/// takes the description of the adapters off the module. A target that names no weight is an error at its
/// place.
void settle_lora(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
