// Lookups, positions, padding.
#include <cmath>

#include "passes/lower/rows.h"

namespace tfc::passes {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;

Arg integer(const Dim& value) { return Lowering::integer(value); }

/// Angles of positions: `frequencies` one for each column (sinusoid) or pair (rope).
void lower_angles(Lowering& l, const std::string& kind, const Arg& frequencies) {
  const Type& type = l.type(l.result());
  const int64_t width = static_width(type), chunk = std::max<int64_t>(1, rows_per_task(width * 8));
  const Dim tokens = type.shape[type.shape.size() - 2];
  Attributes attributes = {{"kind", kind}, {"width", width}, {"chunk", chunk}};
  if (l.operand(0).valid() && l.type(l.operand(0)).rank() == 2) attributes.set("positions", true);
  l.call(kernel_call(
      l, "angles", attributes, ceildiv(type.rows(), chunk),
      {integer(type.rows()), l.pointer(l.result()), frequencies, l.pointer(l.operand(0)), integer(tokens)},
      60 * type.elements(), type.elements()));
}

}  // namespace

void lower_Embedding(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t D = static_width(type), chunk = rows_per_task(D);
  const Location out = l.locate(l.result());
  l.call(kernel_call(l, "embedding",
                     {{"width", D}, {"scale", l.attributes().real("scale")}, {"chunk", chunk}},
                     ceildiv(type.rows(), chunk),
                     {integer(type.rows()), out.pointer, l.pointer(l.operand(0)), l.pointer(l.operand(1)),
                      l.pointer(l.operand(2)), integer(out.stride)},
                     type.elements(), 2 * type.elements()));
}

/// A row of zeros is written for each row of the table, unless it holds something to add to, and a row is
/// read, added and written for each token.
void lower_EmbeddingGrad(Lowering& l) {
  const bool kept = l.accumulates(l.result());
  const Type& dy = l.type(l.operand(0));
  const int64_t D = static_width(dy), V = l.attributes().integer("rows"), columns = D >= 512 ? 64 : 16;
  const Location from = l.locate(l.operand(0));
  l.call(kernel_call(l, "embedding_grad",
                     {{"width", D},
                      {"rows", V},
                      {"scale", l.attributes().real("scale")},
                      {"columns", columns},
                      {"kept", kept}},
                     (D + columns - 1) / columns,
                     {l.pointer(l.result()), from.pointer, l.pointer(l.operand(1)), l.pointer(l.operand(2)),
                      integer(dy.rows()), integer(from.stride)},
                     dy.elements(), 3 * dy.elements() + (kept ? 0 : V * D)));
}

void lower_AddRows(Lowering& l) {
  const Type& type = l.type(l.result());
  const Type& added = l.type(l.operand(1));
  const int64_t D = static_width(type), chunk = rows_per_task(D);
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0)), rows = l.locate(l.operand(1));
  const Dim period = added.rank() == 3 ? type.rows() : type.shape[1];  // rows of their own: no repetition
  l.call(kernel_call(l, "add_rows", {{"width", D}, {"chunk", chunk}}, ceildiv(type.rows(), chunk),
                     {integer(type.rows()), out.pointer, x.pointer, rows.pointer, integer(period),
                      integer(out.stride), integer(x.stride), integer(rows.stride)},
                     type.elements(), 2 * type.elements() + added.elements()));
}

void lower_PositionRows(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t D = static_width(type), chunk = rows_per_task(D);
  const Location out = l.locate(l.result());
  l.call(kernel_call(l, "position_rows",
                     {{"width", D}, {"rows", *l.type(l.operand(0)).shape[0].constant()}, {"chunk", chunk}},
                     ceildiv(type.rows(), chunk),
                     {integer(type.rows()), out.pointer, l.pointer(l.operand(0)), l.pointer(l.operand(1)),
                      integer(type.shape[type.shape.size() - 2]), integer(out.stride)},
                     0, 2 * type.elements()));
}

void lower_PositionRowsGrad(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t D = static_width(type), P = l.attributes().integer("rows"), chunk = rows_per_task(D);
  const Location drows = l.locate(l.operand(0));
  l.call(kernel_call(
      l, "position_rows_grad", {{"width", D}, {"rows", P}, {"chunk", chunk}}, (P + chunk - 1) / chunk,
      {l.pointer(l.result()), drows.pointer, integer(l.type(l.operand(0)).shape[0]), integer(drows.stride)},
      0, 2 * type.elements()));
}

void lower_BatchSum(Lowering& l) {
  const Type& dy = l.type(l.operand(0));
  const int64_t D = static_width(dy), chunk = std::max<int64_t>(1, rows_per_task(D * 8));
  const Location out = l.locate(l.result()), from = l.locate(l.operand(0));
  l.call(kernel_call(l, "batch_sum", {{"width", D}, {"chunk", chunk}}, ceildiv(dy.shape[1], chunk),
                     {integer(dy.shape[1]), out.pointer, from.pointer, integer(dy.shape[0]),
                      integer(out.stride), integer(from.stride)},
                     dy.elements(), dy.elements() + l.type(l.result()).elements()));
}

void lower_MaskRows(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t width = static_width(type), chunk = rows_per_task(width);
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  l.call(kernel_call(l, "mask_rows", {{"width", width}, {"chunk", chunk}}, ceildiv(type.rows(), chunk),
                     {integer(type.rows()), out.pointer, x.pointer, l.pointer(l.operand(1)),
                      integer(out.stride), integer(x.stride)},
                     0, 2 * type.elements()));
}

void lower_Sinusoid(Lowering& l) {
  const int64_t D = l.attributes().integer("width");
  std::vector<double> frequencies;
  for (int64_t d = 0; d < D; ++d) {
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(d - d % 2) / static_cast<double>(D)));
  }
  lower_angles(l, "sinusoid", l.constant("sinusoid." + std::to_string(D), frequencies));
}

void lower_RopeTable(Lowering& l) {
  const int64_t E = l.attributes().integer("width");
  const double theta = l.attributes().real("theta");
  std::vector<double> frequencies;
  for (int64_t i = 0; i < E / 2; ++i) {
    frequencies.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(E)));
  }
  lower_angles(l, "rope",
               l.constant("rope." + std::to_string(E) + "." + ir::attribute_text(theta), frequencies));
}

void lower_Rope(Lowering& l) {
  const Type& type = l.type(l.result());
  const int64_t width = static_width(type), chunk = rows_per_task(width);
  const Location y = l.locate(l.result()), x = l.locate(l.operand(0));
  const ir::Attributes& a = l.attributes();
  l.call(kernel_call(l, "rope",
                     {{"heads", a.integer("heads")},
                      {"head_dim", a.integer("head_dim")},
                      {"style", a.text("style")},
                      {"inverse", a.flag("inverse")},
                      {"own", l.type(l.operand(1)).rank() == 3},
                      {"chunk", chunk}},
                     ceildiv(type.rows(), chunk),
                     {integer(type.rows()), y.pointer, x.pointer, l.pointer(l.operand(1)),
                      integer(type.shape[1]), integer(y.stride), integer(x.stride)},
                     3 * type.elements(), 2 * type.elements()));
}

}  // namespace tfc::passes
