// What a caller makes of a value: a pass over its rows, in its place where nobody else reads it; without an
// edit set the kernel then has nothing to do.
#include "ir/check.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

using ir::Arg;
using ir::Type;
using ir::Value;

namespace {

bool same_place(const Location& a, const Location& b) {
  return a.pointer.space == b.pointer.space && a.pointer.index == b.pointer.index &&
         a.pointer.value == b.pointer.value && a.stride == b.stride;
}

/// `how`: the operand from which on the edit is described. Its value and how share an entry of the table.
void lower_edit(Lowering& l, uint32_t how, bool gradient) {
  const Type& type = l.type(l.result());
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  const Arg table = l.pointer(l.operand(how));
  TFC_CHECK(table.space == ir::Space::Edits,
            "'" + l.node().name + "' is described by other memory than a session's");
  const bool masked = l.graph().operand_count(l.id()) > how + 1 && l.operand(how + 1).valid();
  const int64_t width = static_width(type), chunk = rows_per_task(width);
  const auto size = [&](size_t from_last) {  // of a leading dimension, the last one first
    const size_t rank = type.shape.size();
    return rank >= from_last + 2 ? type.shape[rank - 2 - from_last] : ir::Dim(1);
  };
  l.call(kernel_call(l, "edit",
                     {{"width", width},
                      {"chunk", chunk},
                      {"gradient", gradient},
                      {"masked", masked},
                      {"in_place", same_place(out, x)}},
                     ceildiv(type.rows(), chunk),
                     {Lowering::integer(type.rows()), out.pointer, x.pointer, table,
                      l.pointer(masked ? l.operand(how + 1) : Value{}), Lowering::integer(out.stride),
                      Lowering::integer(x.stride), Lowering::integer(size(0)), Lowering::integer(size(1))},
                     type.elements(), 2 * type.elements()));
}

}  // namespace

void lower_Edit(Lowering& l) { lower_edit(l, 2, false); }
void lower_EditGrad(Lowering& l) { lower_edit(l, 1, true); }

}  // namespace tfc::passes
