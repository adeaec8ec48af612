// What follows a product, on rows that are complete and still in cache.
#include "codegen/activations.h"
#include "codegen/kernels/product_emitter.h"

namespace tfc::codegen {

bool ProductEmitter::has_epilogue() const {
  return !activation.empty() || !slope.empty() || residual_scale || dropout;
}

int ProductEmitter::gamma_slot() const { return dropout ? kMore + 2 : kMore; }
int ProductEmitter::others_slot() const { return gamma_slot() + (has_gamma ? 1 : 0); }
int ProductEmitter::activated_slot() const { return others_slot() + 2 * others; }

/// The branches before this one, left to right, and then this one.
Val ProductEmitter::with_other_branches(Val row, Lane lane, Val y) {
  Val sum;
  for (int i = 0; i < others; ++i) {
    const int slot = others_slot() + 2 * i;
    const Val other = k.load(k.at(k.pointer(slot), row * k.integer(slot + 1)), lane);
    sum = sum ? sum + other : other;
  }
  return sum ? sum + y : y;
}

/// The slope at x as a factor, and x activated, which has the same parts.
Val ProductEmitter::with_slope(Val row, Lane lane, Val y, Val x) {
  const Val activated = has_activated ? activate(slope, x) : Val();
  y = activation_gradient(slope, y, x);
  if (has_activated)
    k.store(k.at(k.pointer(activated_slot()), row * k.integer(activated_slot() + 1)), lane, activated);
  return y;
}

void ProductEmitter::epilogue(const Block& block, Range rows) {
  const Val stream = dropout ? dropout->stream(k.integer(kMore + 1), k.index(0)) : Val();
  k.loop("epilogue", rows.first, rows.last, 1, [&](Val r) {
    DropoutRow keys;
    if (dropout) keys = dropout->row(k.pointer(kMore, ir::DType::I32), r, stream);
    const Ptr sums = k.at(c, r * k.integer(kLdc)), out = k.at(k.pointer(kOut), r * k.integer(kLdOut));
    k.vector_loop("column", block.columns.first, block.columns.last, [&](Lane lane) {
      Val y = k.load(sums, lane);
      if (!activation.empty()) y = activate(activation, y);
      if (has_gamma) y = y * k.load(k.pointer(gamma_slot()), lane);
      if (dropout) y = dropout->apply(keys, lane, y);
      const auto x = [&] { return k.load(k.at(k.pointer(kResidual), r * k.integer(kLdResidual)), lane); };
      if (!slope.empty()) y = with_slope(r, lane, y, x());
      if (residual_scale) {
        y = with_other_branches(r, lane, y);
        if (*residual_scale != 1.0) y = y * *residual_scale;
        y = x() + y;
      }
      k.store(out, lane, y);
    });
  });
}

/// The epilogue of rows that have their last sum.
void ProductEmitter::finish(const Block& block, const Step& step, Range rows) {
  if (!has_epilogue()) return;
  k.if_(step.d + step.depth == block.depths.last, [&] { epilogue(block, rows); });
}

/// Is one of the rows of C asked for?
Val ProductEmitter::any_real(Range rows) {
  const Ptr real = mask();
  Var any = k.var(k.constant(ir::DType::U8, 0));
  k.loop("any", rows.first, rows.last, 1, [&](Val r) { any.set(any.get() | k.load(real, r)); });
  return any.get() != 0;
}

void ProductEmitter::where_real(const Block& block, Range rows, const std::function<void()>& body) {
  if (!masked || sums_real_rows()) return body();
  k.if_(any_real(rows), body, [&] {
    if (fills) zero_rows(block, rows);
  });
}

}  // namespace tfc::codegen
