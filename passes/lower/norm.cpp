// Normalisation: rows in chunks; the parameters' gradients in partial sums by chunk, then added in order.
#include "passes/lower/rows.h"

namespace tfc::passes {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;
using ir::Value;

constexpr int64_t kGradientRows = 32;   // rows whose parameter gradients make one partial sum
constexpr int64_t kCombineColumns = 64;

void lower_norm(Lowering& l, const std::string& kind, uint32_t rstd_result) {
  const Type& type = l.type(l.operand(0));
  const int64_t D = static_width(type), chunk = std::max<int64_t>(1, rows_per_task(D));
  const Location x = l.locate(l.operand(0)), y = l.locate(l.result());
  const bool centred = kind == "layer";
  const Value beta = centred ? l.operand(2) : Value{};
  const Location mean = centred ? l.locate(l.result(1)) : l.locate(Value{});
  l.call(kernel_call(l, "norm",
                     {{"kind", kind}, {"width", D}, {"eps", l.attributes().real("eps")}, {"bias", beta.valid()},
                      {"chunk", chunk}},
                     ceildiv(type.rows(), chunk),
                     {Lowering::integer(type.rows()), y.pointer, x.pointer, l.pointer(l.operand(1)), l.pointer(beta),
                      mean.pointer, l.pointer(l.result(rstd_result)), Lowering::integer(y.stride),
                      Lowering::integer(x.stride)},
                     8 * type.elements(), 2 * type.elements()));
}

/// out = partials added in order; nobody's when the gradient is not read.
void combine(Lowering& l, Value result, Arg partials, const Dim& count, int64_t D) {
  if (!l.used(result)) return;
  l.call(kernel_call(l, "sum_partials", {{"columns", kCombineColumns}}, (D + kCombineColumns - 1) / kCombineColumns,
                     {Lowering::integer(count), l.pointer(result), std::move(partials), Lowering::integer(D),
                      Lowering::integer(2 * D)},
                     count * D, count * D));
}

void lower_norm_grad(Lowering& l, const std::string& kind) {
  const bool centred = kind == "layer";
  const Type& type = l.type(l.operand(0));
  const int64_t D = static_width(type);
  const Dim tasks = ceildiv(type.rows(), kGradientRows);
  const int64_t element = ir::dtype_bytes(l.module().real);
  const Value dgamma = l.result(1), dbeta = centred ? l.result(2) : Value{};
  const bool parameters = l.used(dgamma) || l.used(dbeta);
  const Location dx = l.locate(l.result()), dy = l.locate(l.operand(0)), x = l.locate(l.operand(1));
  const Arg partials = parameters ? l.temporary("partials", 2 * D * element * tasks) : l.pointer(Value{});
  const Arg rstd = l.pointer(l.operand(centred ? 4 : 3)), mean = centred ? l.pointer(l.operand(3)) : l.pointer(Value{});
  l.call(kernel_call(l, "norm_grad",
                     {{"kind", kind}, {"width", D}, {"chunk", kGradientRows}, {"dx", l.used(l.result())},
                      {"parameters", parameters}},
                     tasks,
                     {Lowering::integer(type.rows()), dx.pointer, dy.pointer, x.pointer, l.pointer(l.operand(2)), mean,
                      rstd, partials, Lowering::integer(dx.stride), Lowering::integer(dy.stride),
                      Lowering::integer(x.stride)},
                     14 * type.elements(), 3 * type.elements()));
  if (!parameters) return;
  combine(l, dgamma, partials, tasks, D);
  combine(l, dbeta, Lowering::advance(partials, D * element), tasks, D);
}

}  // namespace

void lower_LayerNorm(Lowering& l) { lower_norm(l, "layer", 2); }
void lower_RmsNorm(Lowering& l) { lower_norm(l, "rms", 1); }
void lower_LayerNormGrad(Lowering& l) { lower_norm_grad(l, "layer"); }
void lower_RmsNormGrad(Lowering& l) { lower_norm_grad(l, "rms"); }

}  // namespace tfc::passes
