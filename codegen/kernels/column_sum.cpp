// Sums over rows, as biases' gradients need them, and the sum of partial results in their order.
#include "codegen/kernels/kernels.h"
#include "codegen/kernels/product.h"

namespace tfc::codegen {

namespace {

// Vectors of a row that are added at once, so that rows are read in pieces of several cache lines.
constexpr int kVectorsTogether = 4;

/// Sums over rows in double: a key's bias has a gradient of nearly zero, the sum of terms that are not.
struct ColumnSummer {
  KernelBuilder& k;
  Ptr dy;
  Val ld;

  std::vector<Val> sum(Val first, Val last, int vectors,
                       const std::function<Val(Val row, int vector)>& load) {
    std::vector<Var> totals;
    for (int v = 0; v < vectors; ++v) totals.push_back(k.var(k.splat(k.constant(ir::DType::F64, 0.0))));
    k.loop("row", first, last, 1, [&](Val row) {
      for (int v = 0; v < vectors; ++v) {
        const Var& total = totals[static_cast<size_t>(v)];
        total.set(total.get() + k.to_double(load(row, v)));
      }
    });
    std::vector<Val> result;
    for (const Var& total : totals) result.push_back(total.get());
    return result;
  }

  /// `add` gets the sum over those rows of each vector of columns from..to-1.
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

/// column_sum {parts, experts?}  out[c] (+)= sum over rows of dy[r, c]
/// slots: out, dy, rows, columns, ld, accumulate, stripes, parts, from, to. tasks = stripes * parts. With the
/// attribute `parts` out is f64 [parts, columns], one row for each part of the rows. Columns from..to-1 sum
/// to zero by theory, so what rounding left of them is dropped. With `experts` also: starts i32; part p sums the rows
/// of expert p, starts[p]..starts[p+1], into row p of out.
llvm::Function* emit_column_sum(KernelBuilder& k, const ir::KernelSpec& spec) {
  const bool in_parts = spec.attributes.flag("parts");
  const bool by_expert = spec.attributes.flag("experts", false);
  const Ptr out = k.pointer(0, in_parts ? ir::DType::F64 : k.real());
  const Val rows = k.integer(2), columns = k.integer(3), accumulate = k.integer(5), stripes = k.integer(6);
  ColumnSummer summer{k, k.pointer(1), k.integer(4)};
  k.for_tasks([&](Val task) {
    const Val part = task / stripes;
    const Range units = share((columns + (kLanes - 1)) / kLanes, stripes, task % stripes);
    const Range row_range = by_expert ? rows_of_expert(k, 10, part) : share(rows, k.integer(7), part);
    const Ptr target = k.at(out, part * columns);
    summer.stripe(row_range.first, row_range.last, units.first * kLanes, k.min(units.last * kLanes, columns),
                  [&](Lane lane, Val rounded) {
                    const Val column = k.splat(lane.start) + k.lane_numbers();
                    const Val cancelled = (column >= k.integer(8)) & (column < k.integer(9));
                    const Val sum = k.select(cancelled, rounded - rounded, rounded);  // NaN stays
                    if (in_parts) {
                      k.store(target, lane, sum);
                      return;
                    }
                    Var total = k.var(sum);
                    k.if_(accumulate != 0, [&] { total.set(k.to_double(k.load(target, lane)) + sum); });
                    k.store(target, lane, k.to_real(total.get()));
                  });
  });
  return k.finish();
}

/// add_parts {wide}  out[i] (+)= parts[0][i] + parts[1][i] + ..., in this order; with `wide` the parts are
/// f64 slots: out, parts, elements, count of parts, part stride, accumulate, tasks
llvm::Function* emit_add_parts(KernelBuilder& k, const ir::KernelSpec& spec) {
  const ir::DType type = spec.attributes.flag("wide") ? ir::DType::F64 : k.real();
  auto convert = [&](Val value) { return type == ir::DType::F64 ? k.to_double(value) : value; };
  const Ptr out = k.pointer(0), source = k.pointer(1, type);
  const Val elements = k.integer(2), count = k.integer(3), stride = k.integer(4), accumulate = k.integer(5);
  k.for_tasks([&](Val task) {
    const Range units = share((elements + (kLanes - 1)) / kLanes, k.integer(6), task);
    k.vector_loop("element", units.first * kLanes, k.min(units.last * kLanes, elements), [&](Lane lane) {
      Var total = k.var(k.splat(k.constant(type, 0.0)));
      k.if_(accumulate != 0, [&] { total.set(convert(k.load(out, lane))); });
      k.loop("part", count,
             [&](Val part) { total.set(total.get() + k.load(k.at(source, part * stride), lane)); });
      k.store(out, lane, k.to_real(total.get()));
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> column_sum_kernels() {
  return {{"column_sum", emit_column_sum}, {"add_parts", emit_add_parts}};
}

}  // namespace tfc::codegen
