// Pooling of sequences.
#include "passes/lower/rows.h"

namespace tfc::passes {

using ir::Type;

void lower_Pool(Lowering& l) {
  const Type& type = l.type(l.operand(0));
  const Location x = l.locate(l.operand(0));
  l.call(kernel_call(l, "pool", {{"kind", l.attributes().text("kind")}, {"width", static_width(type)}},
                     type.shape[0],
                     {Lowering::integer(type.shape[0]), l.pointer(l.result()), x.pointer,
                      l.pointer(l.operand(1)), Lowering::integer(type.shape[1]), Lowering::integer(x.stride)},
                     type.elements(), type.elements()));
}

void lower_AnyReal(Lowering& l) {
  const Type& mask = l.type(l.operand(0));
  l.call(kernel_call(l, "any_real", {}, 1,
                     {Lowering::integer(mask.shape[0]), l.pointer(l.result()), l.pointer(l.operand(0)),
                      Lowering::integer(mask.shape[1])},
                     0, mask.elements()));
}

void lower_PoolGrad(Lowering& l) {
  const Type& type = l.type(l.result());
  const Location dx = l.locate(l.result()), dy = l.locate(l.operand(0));
  l.call(kernel_call(
      l, "pool_grad", {{"kind", l.attributes().text("kind")}, {"width", static_width(type)}}, type.shape[0],
      {Lowering::integer(type.shape[0]), dx.pointer, dy.pointer, l.pointer(l.operand(1)),
       Lowering::integer(type.shape[1]), Lowering::integer(dx.stride), Lowering::integer(dy.stride)},
      type.elements(), type.elements()));
}

}  // namespace tfc::passes
