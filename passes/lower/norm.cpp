// Normalisation: rows in chunks; the parameters' gradients in partial sums by chunk, then added in order.
#include "passes/lower/norm.h"

#include "passes/lower/rows.h"

namespace tfc::passes {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;
using ir::Value;

constexpr int64_t kCombineColumns = 64;

/// The node itself: layer_norm or rms_norm.
void lower_norm(Lowering& l, const std::string& kind, uint32_t rstd_result) {
  NormCall call;
  call.kind = kind;
  call.type = l.type(l.operand(0));
  call.eps = l.attributes().real("eps");
  call.x = l.locate(l.operand(0));
  call.gamma = l.pointer(l.operand(1));
  call.beta = l.pointer(kind == "layer" ? l.operand(2) : Value{});
  call.mean = l.pointer(kind == "layer" ? l.result(1) : Value{});
  call.rstd = l.pointer(l.result(rstd_result));
  call.real = l.real_rows(l.operand(0));
  call_norm(l, call);
}

void lower_norm_grad(Lowering& l, const std::string& kind) {
  const bool centred = kind == "layer";
  NormGradCall call;
  call.kind = kind;
  call.type = l.type(l.operand(0));
  call.dx = l.locate(l.result());
  call.dy = l.locate(l.operand(0));
  call.x = l.locate(l.operand(1));
  call.gamma = l.pointer(l.operand(2));
  call.mean = l.pointer(centred ? l.operand(3) : Value{});
  call.rstd = l.pointer(l.operand(centred ? 4 : 3));
  call.dgamma = l.result(1);
  if (centred) call.dbeta = l.result(2);
  call_norm_grad(l, call);
}

}  // namespace

void sum_partials(Lowering& l, Value gradient, Arg partials, const Dim& count, int64_t D, int64_t stride) {
  if (!l.used(gradient)) return;
  l.call(kernel_call(l, "sum_partials", {{"columns", kCombineColumns}}, (D + kCombineColumns - 1) / kCombineColumns,
                     {Lowering::integer(count), l.pointer(gradient), std::move(partials), Lowering::integer(D),
                      Lowering::integer(stride)},
                     count * D, count * D));
}

void call_norm(Lowering& l, const NormCall& call) {
  const int64_t D = static_width(call.type), chunk = std::max<int64_t>(1, rows_per_task(D));
  const int64_t added = static_cast<int64_t>(call.added.size());
  const Dim rows = call.type.rows(), elements = call.type.elements();
  const Location y = written(l, l.result());  // of a last norm in vjp nobody may read it
  const Location& sum = call.sum.pointer.index < 0 ? y : call.sum;  // the norm overwrites it row by row
  Attributes settings{{"kind", call.kind},
                      {"width", D},
                      {"eps", call.eps},
                      {"bias", call.beta.index >= 0},
                      {"chunk", chunk}};
  std::vector<Arg> args = {Lowering::integer(rows), y.pointer, call.x.pointer, call.gamma, call.beta, call.mean,
                           call.rstd, Lowering::integer(y.stride), Lowering::integer(call.x.stride)};
  if (added > 0) {
    settings.set("added", added);
    settings.set("scale", call.scale);
    args.push_back(sum.pointer);
    args.push_back(Lowering::integer(sum.stride));
    for (const NormCall::Term& term : call.added) {
      args.push_back(term.rows.pointer);
      args.push_back(Lowering::integer(term.rows.stride));
    }
    for (size_t i = 0; i < call.added.size(); ++i)
      add_dropout(settings, args, ("dropout" + std::to_string(i)).c_str(), call.added[i].dropout);
  }
  if (call.real.index >= 0) {
    settings.set("mask", true);
    args.push_back(call.real);
  }
  l.call(kernel_call(l, "norm", std::move(settings), ceildiv(rows, chunk), std::move(args), (8 + added) * elements,
                     (added > 0 ? 3 + added : 2) * elements));
}

void call_norm_grad(Lowering& l, const NormGradCall& call) {
  const int64_t D = static_width(call.type), element = ir::dtype_bytes(l.module().real);
  const Dim rows = call.type.rows(), elements = call.type.elements(), tasks = ceildiv(rows, kPartialRows);
  const bool parameters = l.used(call.dgamma) || l.used(call.dbeta);
  const Arg partials = parameters ? l.temporary("partials", 2 * D * element * tasks) : l.pointer(Value{});
  Attributes settings{{"kind", call.kind},
                      {"width", D},
                      {"chunk", kPartialRows},
                      {"dx", call.dx.pointer.index >= 0},
                      {"parameters", parameters}};
  std::vector<Arg> args = {Lowering::integer(rows), call.dx.pointer, call.dy.pointer, call.x.pointer, call.gamma,
                           call.mean, call.rstd, partials, Lowering::integer(call.dx.stride),
                           Lowering::integer(call.dy.stride), Lowering::integer(call.x.stride)};
  if (call.added) {
    settings.set("added", true);
    args.push_back(call.added->pointer);
    args.push_back(Lowering::integer(call.added->stride));
  }
  if (call.dropout) {
    args.push_back(call.dropped.pointer);
    args.push_back(Lowering::integer(call.dropped.stride));
  }
  add_dropout(settings, args, "dropout", call.dropout);
  l.call(kernel_call(l, "norm_grad", std::move(settings), tasks, std::move(args), 14 * elements,
                     (call.added ? 4 : 3) * elements));
  if (!parameters) return;
  sum_partials(l, call.dgamma, partials, tasks, D, 2 * D);
  sum_partials(l, call.dbeta, Lowering::advance(partials, D * element), tasks, D, 2 * D);
}

void lower_LayerNorm(Lowering& l) { lower_norm(l, "layer", 2); }
void lower_RmsNorm(Lowering& l) { lower_norm(l, "rms", 1); }
void lower_LayerNormGrad(Lowering& l) { lower_norm_grad(l, "layer"); }
void lower_RmsNormGrad(Lowering& l) { lower_norm_grad(l, "rms"); }

}  // namespace tfc::passes
