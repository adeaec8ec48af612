// Evaluates the size programs of the plan (runtime/plan.h, ExprOp).
#pragma once

#include <stdint.h>

#include "runtime/plan.h"

namespace tc {

/// One call's sizes, in the order of the programs' symbols.
struct Sizes {
  int64_t B = 1, T = 1, S = 1, C = 0, I = 0;
};

/// Saturates at INT64_MAX, so that absurd sizes end as "no memory" and not as a small number.
int64_t evaluate(const uint8_t* program, const Sizes& sizes);

/// Whether the program is a number alone, which no call's sizes change; then its value.
bool is_constant(const uint8_t* program, int64_t& value);

}  // namespace tc
