// The optimizer's step, over the block of the parameters that are trained.
#include "passes/lower/rows.h"

namespace tfc::passes {

using ir::Arg;
using ir::Dim;
using ir::Type;

namespace {

constexpr int64_t kChunk = 16384;

Arg integer(const Dim& value) { return Lowering::integer(value); }

}  // namespace

void lower_SumSquares(Lowering& l) {
  const Dim elements = l.type(l.operand(0)).elements(), tasks = ceildiv(elements, kChunk);
  const Arg partials = l.temporary("partials", 8 * tasks);
  l.call(kernel_call(l, "sum_squares", {{"chunk", kChunk}}, tasks,
                     {integer(elements), l.pointer(l.operand(0)), partials}, 2 * elements, elements));
  l.call(
      kernel_call(l, "sum_in_order", {}, 1, {integer(tasks), partials, l.pointer(l.result())}, tasks, tasks));
}

void lower_ClipScale(Lowering& l) {
  l.call(kernel_call(l, "clip_scale", {}, 1,
                     {l.pointer(l.operand(0)), l.pointer(l.operand(1)), l.pointer(l.operand(2)),
                      l.pointer(l.result(0)), l.pointer(l.result(1))},
                     8, 8));
}

/// Every parameter's first element and the one past its last, ascending. Frozen ones lie outside the block:
/// nothing is to be done between the parameters around them in the table.
std::vector<double> parameter_borders(const ir::Module& module) {
  std::vector<double> borders;
  double end = 0;
  for (const ir::Parameter& parameter : module.parameters) {
    borders.push_back(parameter.frozen ? end : static_cast<double>(parameter.offset));
    if (!parameter.frozen) end = static_cast<double>(parameter.offset + parameter.elements());
    borders.push_back(end);
  }
  return borders;
}

void lower_AdamW(Lowering& l) {
  const Dim elements = l.type(l.operand(0)).elements();
  const Arg prepared = l.temporary("prepared", 128);
  l.call(kernel_call(l, "adamw_prepare", {}, 1, {l.pointer(l.operand(5)), prepared}, 200, 24));
  l.call(kernel_call(
      l, "adamw", {{"parameters", static_cast<int64_t>(l.module().parameters.size())}, {"chunk", kChunk}},
      ceildiv(elements, kChunk),
      {l.pointer(l.operand(0)), l.pointer(l.operand(1)), l.pointer(l.operand(2)), l.pointer(l.operand(3)),
       l.pointer(l.operand(4)), prepared, l.pointer(l.operand(6)), l.pointer(l.operand(7)),
       l.constant("borders", parameter_borders(l.module())), integer(elements)},
      14 * elements, 8 * elements));
}

}  // namespace tfc::passes
