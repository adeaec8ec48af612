// Draws for descriptions: splitmix64 (Steele, Lea, Flood 2014), the same on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tfc::models {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  /// least..most, both included.
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(next() % static_cast<uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<int64_t>(choices.size()) - 1)];
  }
  std::string word(std::initializer_list<const char*> choices) { return one_of<const char*>(choices); }

  /// A place in a list that has something in it.
  template <class T>
  size_t place_in(const std::vector<T>& list) {
    return static_cast<size_t>(between(0, static_cast<int64_t>(list.size()) - 1));
  }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace tfc::models
