// Element by element: one kernel with an operation as its setting, over contiguous elements where all
// operands are.
#include "ir/check.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;
using ir::Value;

void elementwise(Lowering& l, Attributes attributes, const Location& out, const std::vector<Location>& in,
                 const Type& type, int64_t flops_per_element, const std::optional<DropoutCall>& dropout) {
  std::vector<Location> all = {out};
  all.insert(all.end(), in.begin(), in.end());
  bool flat = !dropout;  // whose draws go by rows
  for (const Location& location : all) flat = flat && is_flat(location);
  const Dim elements = type.elements();
  attributes.set("inputs", static_cast<int64_t>(in.size()));
  attributes.set("flat", flat);
  std::vector<Arg> args = {Lowering::integer(flat ? elements : type.rows())};
  for (const Location& location : all) args.push_back(location.pointer);
  Dim tasks;
  if (flat) {
    attributes.set("chunk", kChunkElements);
    tasks = ceildiv(elements, kChunkElements);
  } else {
    const int64_t width = static_width(type), chunk = rows_per_task(width);
    attributes.set("width", width);
    attributes.set("chunk", chunk);
    tasks = ceildiv(type.rows(), chunk);
    for (const Location& location : all) args.push_back(Lowering::integer(location.stride));
  }
  add_dropout(attributes, args, "dropout", dropout);
  l.call(kernel_call(l, "elementwise", std::move(attributes), tasks, std::move(args),
                     flops_per_element * elements, static_cast<int64_t>(all.size()) * elements));
}

namespace {

void elementwise_node(Lowering& l, Attributes attributes, int64_t flops_per_element) {
  std::vector<Location> in;
  for (Value operand : l.graph().operands(l.id())) in.push_back(l.locate(operand));
  elementwise(l, std::move(attributes), l.locate(l.result()), in, l.type(l.result()), flops_per_element);
}

}  // namespace

void write_copy(Lowering& l, const Location& to, const Location& from, const Type& type) {
  elementwise(l, {{"op", std::string("copy")}, {"f", std::string(ir::dtype_name(type.dtype))}}, to, {from},
              type, 0);
}

void write_zeros(Lowering& l, const Location& to, const Type& type) {
  const bool flat = is_flat(to);  // then as one row after the other of a chunk each
  const Dim elements = type.elements();
  const Dim rows = flat ? ceildiv(elements, kChunkElements) : type.rows();
  const int64_t width = flat ? kChunkElements : to.width;
  const int64_t chunk = rows_per_task(width);
  l.call(kernel_call(
      l, "zeros", {{"f", std::string(ir::dtype_name(type.dtype))}, {"chunk", chunk}}, ceildiv(rows, chunk),
      {Lowering::integer(rows), to.pointer, Lowering::integer(width),
       Lowering::integer(flat ? width : to.stride), Lowering::integer(flat ? elements : rows * to.stride)},
      0, elements));
}

void lower_Add(Lowering& l) { elementwise_node(l, {{"op", std::string("add")}}, 1); }
void lower_Multiply(Lowering& l) { elementwise_node(l, {{"op", std::string("multiply")}}, 1); }

void lower_Scale(Lowering& l) {
  elementwise_node(l, {{"op", std::string("scale")}, {"factor", l.attributes().real("factor")}}, 1);
}

void lower_Activation(Lowering& l) {
  elementwise_node(l, {{"op", std::string("activation")}, {"kind", l.attributes().text("kind")}},
                   kActivationFlops);
}

void lower_ActivationGrad(Lowering& l) {
  elementwise_node(l, {{"op", std::string("activation_grad")}, {"kind", l.attributes().text("kind")}},
                   kActivationFlops);
}

void lower_Residual(Lowering& l) {
  elementwise_node(l, {{"op", std::string("residual")}, {"scale", l.attributes().real("scale")}},
                   static_cast<int64_t>(l.graph().operand_count(l.id())));
}

/// Its results are views of its operand: the planner places them there.
void lower_Split(Lowering&) {}

/// Copies the operands that were not written in their place.
void lower_Concat(Lowering& l) {
  const Location whole = l.locate(l.result());
  int64_t column = 0;
  for (Value operand : l.graph().operands(l.id())) {
    const Location from = l.locate(operand);
    const Type& type = l.type(operand);
    Location to = whole;
    to.pointer = Lowering::advance(whole.pointer, column * ir::dtype_bytes(type.dtype));
    to.width = static_width(type);
    column += to.width;
    write_copy(l, to, from, type);
  }
}

}  // namespace tfc::passes
