// Numbers of a weight file as this library's: NaN stays NaN with the leading bits of its payload, subnormal
// numbers stay what they are, and what float cannot hold becomes infinite.
#pragma once

#include "runtime/plan.h"
#include "runtime/safetensors.h"

namespace tc {

/// `count` numbers from `source`, at any alignment, to `target` (real: TypeF32 | TypeF64).
void convert(StoredType from, const char* source, int32_t real, char* target, int64_t count);

/// The first number in which the two differ, bit for bit once widened to double; -1: none.
int64_t first_difference(StoredType a_type, const char* a, StoredType b_type, const char* b, int64_t count);

}  // namespace tc
