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

std::vector<KernelFamily> column_sum_kernels();

}  // namespace tfc::codegen
