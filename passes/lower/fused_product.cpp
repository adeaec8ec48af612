// linear, and what follows it on the same elements: activation, residual.
#include "passes/lower/fused.h"
#include "passes/lower/product_plan.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

namespace {

/// The result of the fused node that is `inner`, absent where only the body sees it.
Location result_of(Lowering& l, const FusedBody& body, Value inner) {
  for (uint32_t i = 0; i < body.graph.outputs.size(); ++i) {
    if (body.graph.outputs[i].value == inner) return l.locate(l.result(i));
  }
  return {null_pointer(), 0, 0};
}

}  // namespace

void lower_product_with_epilogue(Lowering& l, const FusedBody& body, NodeId linear) {
  const ir::Type& w = l.type(body.outer_operand(linear, 1));
  Product product;
  product.form = "nt";
  product.a = l.locate(body.outer_operand(linear, 0));
  product.b = l.locate(body.outer_operand(linear, 1));
  if (const Value bias = body.outer_operand(linear, 2); bias.valid()) product.bias = l.pointer(bias);
  product.m = l.type(body.outer_operand(linear, 0)).rows();
  product.n = *w.shape[0].constant();
  product.k = w.shape[1];

  Value last{linear, 0};
  if (const NodeId activation = body.find(OpKind::Activation); activation.valid()) {
    product.activation = body.graph.node(activation).attributes.text("kind");
    last = {activation, 0};
  }
  if (const NodeId residual = body.find(OpKind::Residual); residual.valid()) {
    product.residual_scale = body.graph.node(residual).attributes.real("scale");
    product.x = l.locate(body.outer_operand(residual, 0));
    last = {residual, 0};
  }
  product.out = result_of(l, body, last);
  product.c = result_of(l, body, {linear, 0});  // what the backward pass wants to see again
  if (product.c.pointer.index < 0) product.c = product.out;
  lower_product(l, product);
}

}  // namespace tfc::passes
