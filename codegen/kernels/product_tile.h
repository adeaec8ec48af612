// The innermost pieces of every matrix product, as functions that all product kernels of a library share:
// register tiles of each height, and the packing of operands into panels that lie in cache.
#pragma once

#include "codegen/kernel_builder.h"

namespace tfc::codegen {

/// Accumulators of a tile: `rows` x `columns`, the columns in two hardware vectors, so that 28 of 32 (or 12
/// of 16) registers accumulate, two hold the row of B and A is broadcast from memory. Fewer rows leave the
/// multipliers idle.
struct TileShape {
  int rows;
  int lanes;       // of a hardware vector
  int columns;     // 2 * lanes: the width of a packed panel of B
  int panel_rows;  // the rows rounded up to whole vectors: the width of a packed panel of A
  bool fetches;    // tall enough to fetch while multiplying; else packing a strip fetches the next one
};
TileShape tile_shape(const Target& target, ir::DType real);

/// A depth is walked in blocks of nearly equal size, each at most `greatest`, a multiple of 16: the same for any form
/// and any rows, since each block's sums are a chain of their own.
Val depth_step(KernelBuilder& k, Val depth, int64_t greatest);

/// The helper of that name for this real type, made by `emit` where the module does not have it yet.
llvm::Function* shared_function(KernelBuilder& k, const std::string& name, const std::string& signature,
                                const std::function<void(KernelBuilder&)>& emit);

/// Functions of heights 1..count as a constant array.
llvm::Value* function_table(KernelBuilder& k, const std::string& name, int count,
                            const std::function<llvm::Function*(int height)>& function);

/// Transposes a square of vectors.
std::vector<Val> transpose(KernelBuilder& k, std::vector<Val> rows);

/// How a tile reads A: in place by rows (element (r, d) at r * lda + d), or from a packed panel [depth,
/// panel_rows].
enum class LeftOperand { Rows, Panel };

/// What tiles fetch into the caches while they multiply, so that reading memory and multiplying overlap evenly. A tile walks its depth by lines of a cache: for line i, stream s fetches the lines at
/// address + i * line_step + r * row_step, r < rows (all in bytes).
enum FetchWord { kFetchAddress, kFetchLineStep, kFetchRowStep, kFetchRows, kFetchWords };
inline constexpr int kFetchStreams = 2, kFetchRowsAtOnce = 4;  // rows: a multiple of this
inline constexpr int64_t kLineBytes = 64;

/// fn(a, lda, b, ldb, c, ldc, start, depth, columns, fetch): C[h, columns] = start + A B, with element (d, c) of B at
/// d * ldb + c, whole tile columns wide (where tiles do not fetch, B is a panel: ldb = tile columns). `start` [tile
/// columns] is what every row begins with; null: C += A B. Each element is one chain of fma over ascending depth that
/// begins with `start` or zero, the same for every height and form. `fetch`: kFetchStreams times kFetchWords i64.
llvm::Function* tile_function(KernelBuilder& k, LeftOperand form, int height);

/// The tiles of heights 1..rows as a constant array of functions.
llvm::Value* tile_table(KernelBuilder& k, LeftOperand form);

/// fn(source, ld, panel, columns, depth): panel[d][c] = source[d * ld + c], `width` elements wide;
/// zeros where c >= columns.
llvm::Function* pack_rows_function(KernelBuilder& k, int width);

/// fn(source, ld, panel, columns, depth, mask): as pack_rows of those rows d alone whose mask[d] (u8) is not 0, one
/// after the other.
llvm::Function* pack_real_rows_function(KernelBuilder& k, int width);

/// fn(source, ld, panel, columns, depth): panel[d][c] = source[c * ld + d], `width` elements wide.
/// Columns past the last repeat it. Writes up to one vector of rows past `depth`.
llvm::Function* pack_transposed_function(KernelBuilder& k, int width);

/// fn(source, ld, copy, rows, depth, stride): copy[r * stride + d] = source[r * ld + d].
llvm::Function* copy_rows_function(KernelBuilder& k);

}  // namespace tfc::codegen
