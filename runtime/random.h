// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw 2011): a function of a key and a
// counter, so that no order of evaluation and no thread count can change them.
#pragma once

#include <stdint.h>

#include "runtime/plan.h"
#include "runtime/pool.h"

namespace tc {

struct RandomBits {
  uint32_t word[4];
};

RandomBits philox(uint64_t key, uint64_t counter_low, uint64_t counter_high);

/// In (0, 1), by steps of 2^-32.
inline double uniform(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }
/// In [0, 1), by steps of 2^-53.
inline double uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53;
}

/// What the counter's high word begins with, so that no two uses share numbers.
enum class RandomUse : uint64_t { Initialise = 1, Sample = 2 };
inline uint64_t random_stream(RandomUse use, uint64_t index) {
  return (static_cast<uint64_t>(use) << 56) ^ index;
}

/// Fills the parameter block: every element by (seed, parameter's place in the table, element), padding zero.
void initialise(const ModelDesc& model, uint64_t seed, void* parameters, const Executor& executor);

/// Clears `bytes`, in parallel where that pays.
void clear(void* memory, int64_t bytes, const Executor& executor);

}  // namespace tc
