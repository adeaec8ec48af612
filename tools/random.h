// Random numbers of the verbs: the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>

namespace tfc::tools {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }

  /// N(0,1), by Marsaglia's polar method.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    for (;;) {
      const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, square = u * u + v * v;
      if (square >= 1 || square == 0) continue;
      const double factor = std::sqrt(-2 * std::log(square) / square);
      spare_ = v * factor;
      has_spare_ = true;
      return u * factor;
    }
  }

 private:
  uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace tfc::tools
