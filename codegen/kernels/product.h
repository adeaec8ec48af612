// What goes with product kernels: the rows of an expert, and sums of columns.
#pragma once

#include <vector>

#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

/// Rows of one expert, of `starts` i32 [experts + 1] in that slot.
inline Range rows_of_expert(KernelBuilder& k, int starts_slot, Val expert) {
  const Ptr starts = k.pointer(starts_slot, ir::DType::I32);
  return {k.to_index(k.load(starts, expert)), k.to_index(k.load(starts, expert + 1))};
}

std::vector<KernelFamily> column_sum_kernels();

}  // namespace tfc::codegen
