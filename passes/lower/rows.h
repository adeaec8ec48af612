// How work over rows and elements is cut into tasks: by shapes alone, in pieces worth a thread's while.
#pragma once

#include <algorithm>

#include "passes/lower/dropout.h"
#include "passes/lower/lowering.h"

namespace tfc::passes {

inline constexpr int64_t kChunkElements = 8192;

/// Rows of `width` elements that make one task.
inline int64_t rows_per_task(int64_t width) {
  return width >= kChunkElements ? 1 : kChunkElements / std::max<int64_t>(width, 1);
}

/// Memory of a result that a kernel writes whether anybody reads it or not.
Location written(Lowering& l, ir::Value result);

/// The last dimension, which kernels want as a number.
int64_t static_width(const ir::Type& type);

/// A call without its sizes: `reals` elements read or written, `flops` operations.
ir::Record kernel_call(Lowering& l, std::string family, ir::Attributes attributes, ir::Dim tasks,
                       std::vector<ir::Arg> args, ir::Dim flops, ir::Dim reals);

/// Are the rows one after the other, without gaps?
inline bool is_flat(const Location& location) { return location.stride == location.width; }

/// out = op(in...), element by element, and dropped where that is asked for; all of one type. `op` and its settings are
/// attributes.
void elementwise(Lowering& l, ir::Attributes attributes, const Location& out, const std::vector<Location>& in,
                 const ir::Type& type, int64_t flops_per_element, const std::optional<DropoutCall>& dropout = {});

/// Multiplications and additions of an activation, roughly.
inline constexpr int64_t kActivationFlops = 20;

}  // namespace tfc::passes
