// LayerScale where no product took it along, and its gradient: dgamma in partial sums by chunk, as a norm's.
#include "passes/lower/norm.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

void lower_ScaleColumns(Lowering& l) {
  const ir::Type& type = l.type(l.result());
  const int64_t D = static_width(type), chunk = rows_per_task(D);
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  l.call(kernel_call(l, "scale_columns", {{"width", D}, {"chunk", chunk}}, ceildiv(type.rows(), chunk),
                     {Lowering::integer(type.rows()), out.pointer, x.pointer, l.pointer(l.operand(1)),
                      Lowering::integer(out.stride), Lowering::integer(x.stride)},
                     type.elements(), 2 * type.elements()));
}

void lower_ScaleColumnsGrad(Lowering& l) {
  const ir::Type& type = l.type(l.operand(0));
  const int64_t D = static_width(type);
  const bool wants_dx = l.used(l.result(0)), wants_dgamma = l.used(l.result(1));
  const ir::Dim rows = type.rows(), tasks = ceildiv(rows, kPartialRows);
  const Location dx = l.locate(l.result(0)), dy = l.locate(l.operand(0)), x = l.locate(l.operand(1));
  const ir::Arg partials = wants_dgamma
                               ? l.temporary("partials", ir::dtype_bytes(l.module().real) * D * tasks)
                               : l.pointer(ir::Value{});
  l.call(kernel_call(l, "scale_columns_grad",
                     {{"width", D}, {"chunk", kPartialRows}, {"dx", wants_dx}, {"dgamma", wants_dgamma}}, tasks,
                     {Lowering::integer(rows), dx.pointer, dy.pointer, x.pointer, l.pointer(l.operand(2)), partials,
                      Lowering::integer(dx.stride), Lowering::integer(dy.stride), Lowering::integer(x.stride)},
                     3 * type.elements(), 3 * type.elements()));
  sum_partials(l, l.result(1), partials, tasks, D, D);
}

}  // namespace tfc::passes
