// Rows taken out of a batch's inputs, shortened or padded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/session.h"

namespace tfc::models {

/// These rows, in this order, with T own and S source tokens. What is added holds what a model must never
/// read: NaN, ids out of any range, masks of 0. Without grad_output and what has no rows.
tools::Inputs select(const tools::Inputs& inputs, const std::vector<int64_t>& rows, int64_t T, int64_t S);

/// The mask of that name: row b has `lengths[b]` real tokens. Nothing where the model declares no such mask.
void set_mask(tools::Inputs& inputs, const std::string& name, const std::vector<int64_t>& lengths);

/// Puts what must never be read at every position that the masks leave out.
void poison_masked(tools::Inputs& inputs);

/// Bytes of tokens [0, count) of row b in an array [B,T,width].
Bytes tokens_of(const Bytes& array, int64_t B, int64_t b, int64_t count, int64_t T);

}  // namespace tfc::models
