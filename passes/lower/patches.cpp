// Images as patches, and the token before them: copies of short pieces, a small part of what the product takes
// that follows.
#include "ir/check.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

namespace {

using ir::Dim;
using ir::Type;

Dim batch_of(const Type& type) { return type.shape[0]; }

/// Both directions: `image` is what has the pixels, `patches` the other.
void lower_pixels(Lowering& l, const std::string& direction, const Type& image, ir::Arg pixels,
                  const Location& patches) {
  std::vector<int64_t> sizes;
  for (size_t i = 1; i < 4; ++i) sizes.push_back(image.shape[i].constant().value());
  const Dim rows = batch_of(image) * Dim(sizes[1] / l.attributes().integer("size"));
  l.call(kernel_call(l, direction,
                     {{"size", l.attributes().integer("size")},
                      {"channels", sizes[0]},
                      {"height", sizes[1]},
                      {"width", sizes[2]}},
                     rows, {patches.pointer, pixels, Lowering::integer(patches.stride)}, 0, 2 * image.elements()));
}

}  // namespace

void lower_Patches(Lowering& l) {
  lower_pixels(l, "patches", l.type(l.operand(0)), l.pointer(l.operand(0)), l.locate(l.result()));
}

void lower_PatchesGrad(Lowering& l) {
  lower_pixels(l, "patches_grad", l.type(l.result()), l.pointer(l.result()), l.locate(l.operand(0)));
}

void lower_Prepend(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t D = static_width(type), chunk = rows_per_task(D);
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  const bool rows = l.operand(2).valid();
  l.call(kernel_call(l, "prepend", {{"width", D}, {"chunk", chunk}, {"rows", rows}}, ceildiv(type.rows(), chunk),
                     {Lowering::integer(type.rows()), out.pointer, x.pointer, l.pointer(l.operand(1)),
                      l.pointer(l.operand(2)), Lowering::integer(type.shape[1]), Lowering::integer(out.stride),
                      Lowering::integer(x.stride)},
                     rows ? type.elements() : Dim(0), 2 * type.elements()));
}

void lower_PrependGrad(Lowering& l) {
  const Type& type = l.type(l.operand(0));
  const int64_t D = static_width(type), chunk = rows_per_task(D);
  const Location dy = l.locate(l.operand(0));
  const Dim T = type.shape[1];
  if (l.used(l.result(0))) {
    const Location dx = l.locate(l.result(0));
    const Dim rows = batch_of(type) * (T - 1);
    l.call(kernel_call(l, "drop_first", {{"width", D}, {"chunk", chunk}}, ceildiv(rows, chunk),
                       {Lowering::integer(rows), dx.pointer, dy.pointer, Lowering::integer(T),
                        Lowering::integer(dx.stride), Lowering::integer(dy.stride)},
                       0, 2 * l.type(l.result(0)).elements()));
  }
  if (!l.used(l.result(1))) return;
  // The sum over the batch of the first rows: those of one token, a whole row of tokens apart.
  l.call(kernel_call(l, "batch_sum", {{"width", D}, {"chunk", int64_t{1}}}, 1,
                     {Lowering::integer(1), l.pointer(l.result(1)), dy.pointer, Lowering::integer(batch_of(type)),
                      Lowering::integer(D), Lowering::integer(T * dy.stride)},
                     batch_of(type) * D, (batch_of(type) + 1) * D));
}

}  // namespace tfc::passes
