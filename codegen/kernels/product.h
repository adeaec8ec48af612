// What product kernels share: ranges of work, and the families that go with products.
#pragma once

#include <vector>

#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

struct Range {
  Val first, last;
  Val size() const { return last - first; }
};

/// Part number `part` of 0..total-1 in `parts` nearly equal parts.
inline Range share(Val total, Val parts, Val part) {
  return {total * part / parts, total * (part + 1) / parts};
}

/// Rows of one expert, of `starts` i32 [experts + 1] in that slot.
inline Range rows_of_expert(KernelBuilder& k, int starts_slot, Val expert) {
  const Ptr starts = k.pointer(starts_slot, ir::DType::I32);
  return {k.to_index(k.load(starts, expert)), k.to_index(k.load(starts, expert + 1))};
}

std::vector<KernelFamily> column_sum_kernels();

}  // namespace tfc::codegen
