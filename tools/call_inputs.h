// Random inputs for any model: as tensors for the interpreter, and as the tc_batch that a library takes.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "ir/module.h"
#include "runtime/api.h"

namespace tfc::tools {

/// By the names of the IR's inputs: tokens, x, src, tgt, memory, types, mask, src_mask, positions, documents, prefix,
/// src_positions, src_documents, targets, grad_output, mean.
using Inputs = std::map<std::string, ir::Tensor>;

/// What the entries of `module` (phase joint or later) take at `point`. With `padded`, rows end in padding of
/// different lengths where the model declares masks, and some targets do not count.
Inputs random_inputs(const ir::Module& module, const ir::Point& point, uint64_t seed, bool padded);

/// Without the padding: masks of ones.
Inputs without_padding(Inputs inputs);

/// Rows that end in padding of every length, half of all positions together.
Inputs half_padded(Inputs inputs);

/// Prefixes of one token at most, which any first part of a row may bring through the cache.
Inputs with_short_prefixes(Inputs inputs);

/// The same as a library takes it; owns the memory that `batch` points to.
class Batch {
 public:
  Batch(const tc_info& info, const Inputs& inputs, const ir::Point& point);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  tc_batch batch{};
  const void* grad_output = nullptr;  // [output's shape], where there is one
  bool has_mask = false;

  /// Tokens [first, first + count) of every row, for decode; without mask and targets.
  tc_batch slice(const tc_info& info, int64_t first, int64_t count);

 private:
  const void* keep(const ir::Tensor& tensor, int real_bytes);
  std::deque<std::vector<uint8_t>> storage_;
  const void* targets_ = nullptr;
};

}  // namespace tfc::tools
