// Attention with linear biases (Press, Smith, Lewis 2021, arXiv:2108.12409): a score falls by slope times distance.
#pragma once

#include <cstdint>
#include <vector>

namespace tfc::ir {

/// A slope for each head: a geometric sequence from 2^(-8/H) on; for an H that is no power of two those of the next
/// lower one, then every other one of the next higher, as in the paper's code.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace tfc::ir
