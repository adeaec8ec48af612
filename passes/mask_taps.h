// What a tap shows of padding is zeros.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// tap:NAME = v  ->  tap:NAME = mask_rows(v, mask), and likewise its gradient, for values of tokens [B,T,...] or
/// [B,S,...] where the model declares a mask. (The weights of an attention know their mask themselves.)
/// Before: complete joint graphs.   After: no tap of tokens shows what stands at a masked position.
/// Why: nobody else reads those rows, so kernels may leave there what they like.
bool mask_taps(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
