// Sums over rows, as biases' gradients need them, and the sum of partial results in their order.
#include "codegen/kernels/kernels.h"
#include "codegen/kernels/product.h"

namespace tfc::codegen {

namespace {

// Rows added up before they join the total: keeps the error of long sums small.
constexpr int64_t kRowsTogether = 64;
// Vectors of a row that are added at once, so that rows are read in pieces of several cache lines.
constexpr int kVectorsTogether = 4;

/// total[c..] += the column sums of rows first..last-1, for `vectors` vectors from column `c` on.
struct ColumnSummer {
  KernelBuilder& k;
  Ptr dy;
  Val ld;

  /// The rows' sum in `vectors` vectors, `kRowsTogether` rows at a time.
  std::vector<Val> sum(Val first, Val last, int vectors, const std::function<Val(Val row, int vector)>& load) {
    const Val zeros = k.splat(k.number(0.0));
    std::vector<Var> total, group;
    for (int v = 0; v < vectors; ++v) total.push_back(k.var(zeros)), group.push_back(k.var(zeros));
    k.loop("rows", first, last, kRowsTogether, [&](Val from) {
      for (Var& sum : group) sum.set(zeros);
      k.loop("row", from, k.min(last, from + kRowsTogether), 1, [&](Val row) {
        for (int v = 0; v < vectors; ++v) group[v].set(group[v].get() + load(row, v));
      });
      for (int v = 0; v < vectors; ++v) total[v].set(total[v].get() + group[v].get());
    });
    std::vector<Val> result;
    for (Var& sum : total) result.push_back(sum.get());
    return result;
  }

  void stripe(Val first_row, Val last_row, Val from, Val to, const std::function<void(Lane, Val)>& add) {
    constexpr int64_t width = kVectorsTogether * kLanes;
    const Val whole = from + (to - from) / width * width;
    k.loop("wide", from, whole, width, [&](Val c) {
      const std::vector<Val> sums = sum(first_row, last_row, kVectorsTogether, [&](Val row, int v) {
        return k.load(dy, Lane{row * ld + c + v * kLanes, {}});
      });
      for (int v = 0; v < kVectorsTogether; ++v) add(Lane{c + v * kLanes, {}}, sums[static_cast<size_t>(v)]);
    });
    k.vector_loop("narrow", whole, to, [&](Lane lane) {
      add(lane, sum(first_row, last_row, 1, [&](Val row, int) {
            return k.load(dy, Lane{row * ld + lane.start, lane.mask});
          })[0]);
    });
  }
};

/// column_sum {}  out[c] (+)= sum over rows of dy[r, c]
/// slots: out, dy, rows, columns, ld, accumulate, stripes, parts, part stride. tasks = stripes * parts; part p of the
/// rows goes to out + p * part stride.
llvm::Function* emit_column_sum(KernelBuilder& k, const ir::KernelSpec&) {
  const Ptr out = k.pointer(0);
  const Val rows = k.integer(2), columns = k.integer(3), accumulate = k.integer(5), stripes = k.integer(6),
            parts = k.integer(7), part_stride = k.integer(8);
  ColumnSummer summer{k, k.pointer(1), k.integer(4)};
  k.for_tasks([&](Val task) {
    const Val part = task / stripes;
    const Range units = share((columns + (kLanes - 1)) / kLanes, stripes, task % stripes);
    const Range row_range = share(rows, parts, part);
    const Ptr target = k.at(out, part * part_stride);
    summer.stripe(row_range.first, row_range.last, units.first * kLanes, k.min(units.last * kLanes, columns),
                  [&](Lane lane, Val sum) {
                    Var value = k.var(sum);
                    k.if_(accumulate != 0, [&] { value.set(k.load(target, lane) + sum); });
                    k.store(target, lane, value.get());
                  });
  });
  return k.finish();
}

/// add_parts {}  out[i] (+)= parts[0][i] + parts[1][i] + ..., in this order
/// slots: out, parts, elements, count of parts, part stride, accumulate, tasks
llvm::Function* emit_add_parts(KernelBuilder& k, const ir::KernelSpec&) {
  const Ptr out = k.pointer(0), source = k.pointer(1);
  const Val elements = k.integer(2), count = k.integer(3), stride = k.integer(4), accumulate = k.integer(5);
  k.for_tasks([&](Val task) {
    const Range units = share((elements + (kLanes - 1)) / kLanes, k.integer(6), task);
    k.vector_loop("element", units.first * kLanes, k.min(units.last * kLanes, elements), [&](Lane lane) {
      Var total = k.var(k.splat(k.number(0.0)));
      k.if_(accumulate != 0, [&] { total.set(k.load(out, lane)); });
      k.loop("part", count, [&](Val part) { total.set(total.get() + k.load(k.at(source, part * stride), lane)); });
      k.store(out, lane, total.get());
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> column_sum_kernels() {
  return {{"column_sum", emit_column_sum}, {"add_parts", emit_add_parts}};
}

}  // namespace tfc::codegen
