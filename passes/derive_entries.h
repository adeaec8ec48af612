// The entry points of a library, from the one graph of its model.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

/// Replaces the entry "model" by the entries that a library offers:
///   infer      the model's output                    last       logits of each row's last token
///   loss       sum and count                         logprobs   log-probability of each target
///   train      as loss, with a backward to come      vjp        as infer, with a backward to come
///   step       clipping and AdamW over whole blocks  decode     the next tokens, with a cache
///   encode     the memory's keys and values, for decode of an encoder-decoder
/// Before: one graph of primitives.   After: one graph for each entry; forward and update are complete.
/// Why: each entry is optimised, planned and published with its sizes on its own; they share parameters and
/// kernels.
bool derive_entries(ir::Module& module, PassContext& context);

}  // namespace tfc::passes
