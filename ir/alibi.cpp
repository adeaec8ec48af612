#include "ir/alibi.h"

#include <bit>
#include <cmath>

namespace tfc::ir {

std::vector<double> alibi_slopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  for (int64_t h = 0; h < power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  }
  for (int64_t h = power; h < heads; ++h) {
    const int64_t odd = 2 * (h - power) + 1;
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(odd) / static_cast<double>(2 * power)));
  }
  return slopes;
}

}  // namespace tfc::ir
