#include "codegen/kernels/product_few_rows.h"

#include <algorithm>

#include "codegen/kernels/product_tile.h"

namespace tfc::codegen {

namespace {

/// A few vectors of columns at a time, over all of the depth: squares of the weight are transposed in
/// registers and multiplied there. While one group's rows pass, the next one's are fetched into the
/// second-level cache, for the rows are too many streams and too short for the hardware to foresee.
struct FewRowsEmitter {
  KernelBuilder& k;
  int rows, lanes, vectors;  // rows of A; columns of a vector; vectors of a group
  int64_t depth_block;
  Ptr a, b, c, start, square;
  Val lda, ldb, ldc, columns, depth;

  FewRowsEmitter(KernelBuilder& builder, int count, int64_t block)
      : k(builder),
        rows(count),
        lanes(tile_shape(k.target(), k.real()).lanes),
        // Chains of multiply-adds enough to hide their latency, where registers are left for them.
        vectors(std::clamp(k.target().registers / 2 / count, 1, kLanes / std::min(lanes, kLanes))),
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

  void whole_square(Sums& sums, Val d) {
    std::vector<Val> square_rows;
    for (const Ptr& p : sums.column) {
      square_rows.push_back(k.load_vector(p, d, lanes));
      k.prefetch(p, ldb * (lanes * vectors) + d, /*locality=*/2);
    }
    square_rows = transpose(k, square_rows);
    for (int j = 0; j < lanes; ++j) multiply(sums, d + j, square_rows[static_cast<size_t>(j)]);
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
    const Val whole = from + (to - from) / lanes * lanes;
    k.loop("square", from, whole, lanes, [&](Val d) {
      for (Sums& sums : group) whole_square(sums, d);
    });
    k.if_(whole < to, [&] {
      for (Sums& sums : group) part_of_square(sums, whole, to);
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
    k.loop("depths", k.index(0), depth, depth_block, [&](Val d) {
      const Val begins = (d == 0) & !continues;
      each(group, [&](Sums&, Var& block, Var&, Val) { block.set(k.splat(k.number(0.0), lanes)); });
      k.if_(begins, [&] {
        each(group,
             [&](Sums& sums, Var& block, Var&, Val) { block.set(k.load_vector(start, sums.first, lanes)); });
      });
      depths(group, d, k.min(d + depth_block, depth));
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
