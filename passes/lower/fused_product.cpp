// linear and linear_dx, and what follows them on the same elements: activation, LayerScale, dropout,
// slope of an activation, residual.
#include "passes/lower/fused.h"
#include "passes/lower/product_plan.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

namespace {

/// The result of the fused node that is `inner`, absent where only the body sees it.
Location result_of(Lowering& l, const FusedBody& body, Value inner) {
  return l.locate(body.outer_result(inner));
}

/// x + product: the operand that comes from outside.
Value other_term(const FusedBody& body, NodeId sum) {
  const Value first = body.outer_operand(sum, 0);
  return first.valid() ? first : body.outer_operand(sum, 1);
}

/// What the product's result goes through. Returns the value that comes out.
Value read_epilogue(Lowering& l, const FusedBody& body, Value product_result, Product& product) {
  Value last = product_result;
  if (const NodeId activation = body.find(OpKind::Activation); activation.valid()) {
    if (body.outer_operand(activation, 0).valid()) {  // of what the slope is of
      product.activated = result_of(l, body, {activation, 0});
    } else {
      product.activation = body.graph.node(activation).attributes.text("kind");
      last = {activation, 0};
    }
  }
  if (const NodeId dropout = body.find(OpKind::Dropout); dropout.valid()) {
    product.dropout = dropout_call(l, body.graph.node(dropout).attributes, body.outer_operand(dropout, 1));
    last = {dropout, 0};
  }
  if (const NodeId slope = body.find(OpKind::ActivationGrad); slope.valid()) {
    product.slope = body.graph.node(slope).attributes.text("kind");
    product.x = l.locate(body.outer_operand(slope, 1));
    last = {slope, 0};
  }
  if (const NodeId scaled = body.find(OpKind::ScaleColumns); scaled.valid())
    product.gamma = l.pointer(body.outer_operand(scaled, 1));
  const NodeId residual = body.find(OpKind::Residual), add = body.find(OpKind::Add);
  if (const NodeId sum = residual.valid() ? residual : add; sum.valid()) {
    product.residual_scale = residual.valid() ? body.graph.node(sum).attributes.real("scale") : 1.0;
    product.x = l.locate(other_term(body, sum));
    for (uint32_t slot = 1; slot < body.graph.operand_count(sum) && body.graph.operand_count(sum) > 2;
         ++slot) {
      const Value other = body.outer_operand(sum, slot);
      if (other.valid()) product.others.push_back(l.locate(other));
    }
    last = {sum, 0};
  }
  return last;
}

}  // namespace

void lower_product_with_epilogue(Lowering& l, const FusedBody& body, NodeId node) {
  const OpKind op = body.graph.node(node).op;
  const bool by_expert = op == OpKind::ExpertLinear || op == OpKind::ExpertLinearDx;
  const bool forward = op == OpKind::Linear || op == OpKind::ExpertLinear;  // else the gradient of the input
  Product product;
  product.form = forward ? "nt" : "nn";
  product.a = l.locate(body.outer_operand(node, 0));
  product.b = l.locate(body.outer_operand(node, 1));
  if (const Value bias = forward ? body.outer_operand(node, 2) : Value{}; bias.valid()) product.bias = l.pointer(bias);
  product.m = l.type(body.outer_operand(node, 0)).rows();
  product.n = *body.graph.type({node, 0}).width().constant();
  product.k = l.type(body.outer_operand(node, 0)).width();
  if (!by_expert) set_rows(l, product, body.outer_operand(node, 0));
  if (by_expert) {
    const Value starts = body.outer_operand(node, forward ? 3 : 2);
    product.experts = {l.pointer(starts), *l.type(starts).shape[0].constant() - 1};
  }
  const Value last = read_epilogue(l, body, {node, 0}, product);
  product.out = result_of(l, body, last);
  product.c = result_of(l, body, {node, 0});  // what the backward pass wants to see again
  if (product.c.pointer.index < 0) product.c = product.out;
  lower_product(l, product);
}

}  // namespace tfc::passes
