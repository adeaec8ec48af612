#include "codegen/kernels/product_few_rows.h"

#include <algorithm>

#include "codegen/kernels/product_tile.h"

namespace tfc::codegen {

namespace {

// Lines of cache that are fetched ahead of the multiplications, in each row of a group.
constexpr int64_t kLinesAhead = 8;

/// A few vectors of columns at a time, over all of the depth: squares of the weight are transposed in registers and
/// multiplied there. A group's rows are too many streams for the hardware to foresee, so each fetches a few lines
/// ahead into the first-level cache, at its end the first lines of the next group's. Not farther: rows of 4 KB or a
/// multiple fall on the same few sets of a cache, and what is fetched too early is lost again. For the same reason a
/// line is used up at once.
struct FewRowsEmitter {
  KernelBuilder& k;
  int rows, lanes, vectors;  // rows of A; columns of a vector; vectors of a group
  int64_t line;              // elements of a line of cache, at least a vector
  int64_t depth_block;       // greatest block of depth
  Ptr a, b, c, start, square;
  Val lda, ldb, ldc, columns, depth;

  FewRowsEmitter(KernelBuilder& builder, int count, int64_t block)
      : k(builder),
        rows(count),
        lanes(tile_shape(k.target(), k.real()).lanes),
        // Chains of multiply-adds enough to hide their latency, where registers are left for them.
        vectors(std::clamp(k.target().registers / 2 / count, 1, kLanes / std::min(lanes, kLanes))),
        line(std::max<int64_t>(kLineBytes / ir::dtype_bytes(k.real()), lanes)),
        depth_block(block),
        a(k.pointer(0)),
        b(k.pointer(2)),
        c(k.pointer(4)),
        start(k.pointer(6)),
        square(k.pointer(9)),
        lda(k.integer(1)),
        ldb(k.integer(3)),
        ldc(k.integer(5)),
        columns(k.integer(7)),
        depth(k.integer(8)) {}

  /// One vector of each row's sums, in the block of depth and over all.
  struct Sums {
    Val first;  // column
    Val mask;
    std::vector<Ptr> column;
    std::vector<Var> block, total;
  };

  Sums sums_of(Val first) {
    Sums sums{first, k.first_lanes_mask(columns - first, lanes), {}, {}, {}};
    const Val zeros = k.splat(k.number(0.0), lanes);
    for (int j = 0; j < lanes; ++j) sums.column.push_back(k.at(b, k.min(first + j, columns - 1) * ldb));
    for (int row = 0; row < rows; ++row) {
      sums.block.push_back(k.var(zeros));
      sums.total.push_back(k.var(zeros));
    }
    return sums;
  }

  void each(std::vector<Sums>& group,
            const std::function<void(Sums&, Var& block, Var& total, Val at)>& body) {
    for (Sums& sums : group) {
      for (int row = 0; row < rows; ++row) {
        const auto i = static_cast<size_t>(row);
        body(sums, sums.block[i], sums.total[i], ldc * row + sums.first);
      }
    }
  }

  void multiply(Sums& sums, Val d, Val vector) {
    for (int row = 0; row < rows; ++row) {
      Var& sum = sums.block[static_cast<size_t>(row)];
      sum.set(k.fma(k.splat(k.load(a, lda * row + d), lanes), vector, sum.get()));
    }
  }

  /// One line of cache of each column, in squares; the lines that are `ahead` elements further on are fetched.
  void line_of_squares(Sums& sums, Val d, Val ahead) {
    for (int64_t first = 0; first < line; first += lanes) {
      std::vector<Val> square_rows;
      for (const Ptr& p : sums.column) {
        square_rows.push_back(k.load_vector(p, d + first, lanes));
        if (first == 0) k.prefetch(p, d + ahead);
      }
      square_rows = transpose(k, square_rows);
      for (int j = 0; j < lanes; ++j) multiply(sums, d + (first + j), square_rows[static_cast<size_t>(j)]);
    }
  }

  void part_of_square(Sums& sums, Val d, Val to) {
    const Val mask = k.first_lanes_mask(to - d, lanes);
    std::vector<Val> square_rows;
    for (const Ptr& p : sums.column) square_rows.push_back(k.load_vector(p, d, lanes, mask));
    square_rows = transpose(k, square_rows);
    for (int j = 0; j < lanes; ++j) k.store(square, k.index(j * lanes), square_rows[static_cast<size_t>(j)]);
    k.loop("rest", d, to, 1,
           [&](Val at) { multiply(sums, at, k.load_vector(square, (at - d) * lanes, lanes)); });
  }

  void depths(std::vector<Sums>& group, Val from, Val to) {
    const Val whole = from + (to - from) / line * line;
    const Val next_group = ldb * (lanes * vectors) - depth;
    k.loop("line", from, whole, line, [&](Val d) {
      const Val ends = d + kLinesAhead * line >= depth;
      const Val ahead = k.select(ends, next_group, k.index(0)) + kLinesAhead * line;
      for (Sums& sums : group) line_of_squares(sums, d, ahead);
    });
    k.loop("part", whole, to, lanes, [&](Val d) {
      for (Sums& sums : group) part_of_square(sums, d, k.min(d + lanes, to));
    });
  }

  void multiply_group(Val first) {
    std::vector<Sums> group;
    for (int i = 0; i < vectors; ++i) group.push_back(sums_of(first + i * lanes));
    const Val continues = k.is_null(start);
    k.if_(continues, [&] {
      each(group,
           [&](Sums& sums, Var&, Var& total, Val at) { total.set(k.load_vector(c, at, lanes, sums.mask)); });
    });
    const Val step = depth_step(k, depth, depth_block);
    k.loop("depths", k.index(0), depth, step, [&](Val d) {
      const Val begins = (d == 0) & !continues;
      each(group, [&](Sums&, Var& block, Var&, Val) { block.set(k.splat(k.number(0.0), lanes)); });
      k.if_(begins, [&] {
        each(group,
             [&](Sums& sums, Var& block, Var&, Val) { block.set(k.load_vector(start, sums.first, lanes)); });
      });
      depths(group, d, k.min(d + step, depth));
      k.if_(
          begins, [&] { each(group, [&](Sums&, Var& block, Var& total, Val) { total.set(block.get()); }); },
          [&] {
            each(group, [&](Sums&, Var& block, Var& total, Val) { total.set(total.get() + block.get()); });
          });
    });
    each(group, [&](Sums& sums, Var&, Var& total, Val at) { k.store_vector(c, at, total.get(), sums.mask); });
  }

  void emit() {
    k.loop("group", k.index(0), columns, lanes * vectors, [&](Val first) { multiply_group(first); });
  }
};

}  // namespace

llvm::Function* few_rows_function(KernelBuilder& k, int64_t depth_block, int rows) {
  const std::string name = "tc.few_rows." + std::to_string(depth_block) + "." + std::to_string(rows);
  return shared_function(k, name, "pipipipiip",
                         [&](KernelBuilder& helper) { FewRowsEmitter(helper, rows, depth_block).emit(); });
}

llvm::Value* few_rows_table(KernelBuilder& k, int64_t depth_block) {
  return function_table(k, "tc.few_rows." + std::to_string(depth_block), kFewRows,
                        [&](int rows) { return few_rows_function(k, depth_block, rows); });
}

}  // namespace tfc::codegen
