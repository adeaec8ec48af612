#include "passes/lower/dropout.h"

#include "ir/dropout.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

using ir::Type;
using ir::Value;

DropoutCall dropout_call(Lowering& l, const ir::Attributes& attributes, Value keys) {
  const uint64_t place = ir::dropout_place(attributes.text("place"));
  return {attributes.real("p"), l.pointer(keys), Lowering::integer(static_cast<int64_t>(place))};
}

void add_dropout(ir::Attributes& attributes, std::vector<ir::Arg>& args, const char* key,
                 const std::optional<DropoutCall>& call) {
  if (!call) return;
  attributes.set(key, call->p);
  args.push_back(call->keys);
  args.push_back(call->place);
}

void lower_DropoutKeys(Lowering& l) {
  constexpr int64_t kRows = 512;
  const Type& keys = l.type(l.result());
  const ir::Dim rows = keys.shape[0] * keys.shape[1];
  l.call(kernel_call(l, "dropout_keys", {{"chunk", kRows}}, ceildiv(rows, kRows),
                     {Lowering::integer(rows), l.pointer(l.result()), l.pointer(l.operand(0)),
                      Lowering::integer(keys.shape[1])},
                     60 * rows, 2 * rows));
}

void lower_Dropout(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t width = static_width(type), chunk = rows_per_task(width);
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  const DropoutCall call = dropout_call(l, l.attributes(), l.operand(1));
  l.call(kernel_call(l, "dropout", {{"p", call.p}, {"width", width}, {"chunk", chunk}}, ceildiv(type.rows(), chunk),
                     {Lowering::integer(type.rows()), out.pointer, x.pointer, call.keys, call.place,
                      Lowering::integer(out.stride), Lowering::integer(x.stride)},
                     12 * type.elements(), 2 * type.elements()));
}

}  // namespace tfc::passes
