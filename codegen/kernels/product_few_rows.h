// Products with so few rows of A that reading the weight is all the work.
#pragma once

#include "codegen/kernel_builder.h"

namespace tfc::codegen {

/// Up to this many rows a product is read past the panels.
inline constexpr int kFewRows = 4;

/// fn(a, lda, b, ldb, c, ldc, start, columns, depth, square): C[rows, columns] = start + A B^T for B
/// [columns, depth]; `start` null: C += A B^T. `square`: memory for a square of vectors. The bits are those
/// of packed panels and tiles with blocks of `depth_block`.
llvm::Function* few_rows_function(KernelBuilder& k, int64_t depth_block, int rows);

/// Those of 1..kFewRows rows as a constant array.
llvm::Value* few_rows_table(KernelBuilder& k, int64_t depth_block);

}  // namespace tfc::codegen
