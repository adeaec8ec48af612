// Drawing a token from a row of logits.
#pragma once

#include <stdint.h>

#include "runtime/message.h"
#include "runtime/plan.h"

namespace tc {

/// Room for one row's draw, [V] each.
struct SamplingScratch {
  double* values;   // the logits
  double* weights;  // exp of these
  int32_t* order;
};

/// What decides a draw besides the logits: rows draw independently.
struct Draw {
  uint64_t seed;
  int64_t row, position;
};

tc_status check_sampling(const ModelDesc& model, const tc_sampling* given, tc_sampling& settings,
                         Message& message);

/// TC_E_STATE where the row has a NaN or +inf, or nothing finite.
tc_status sample(const ModelDesc& model, const void* logits, const tc_sampling& settings, const Draw& draw,
                 const SamplingScratch& scratch, int32_t& token, Message& message);

}  // namespace tc
