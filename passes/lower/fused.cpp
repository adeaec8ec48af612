// Fused nodes: one kernel for the primitives of a body. Each kernel knows the few bodies that the fusing passes make.
#include "passes/lower/fused.h"

#include "ir/check.h"
#include "passes/lower/product_plan.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

NodeId FusedBody::find(OpKind op) const {
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).op == op) return id;
  }
  return {};
}

Value FusedBody::outer_operand(NodeId inner, uint32_t slot) const {
  const Value value = graph.operand(inner, slot);
  if (!value.valid()) return {};
  const ir::Node& argument = graph.node(value.node);
  if (argument.op != OpKind::Argument) return {};
  return lowering.operand(static_cast<uint32_t>(argument.attributes.integer("index")));
}

Value FusedBody::outer_result(Value inner) const {
  for (uint32_t i = 0; i < graph.outputs.size(); ++i) {
    if (graph.outputs[i].value == inner) return lowering.result(i);
  }
  return {};
}

namespace {

/// add(kept, linear_dw(dy, x)): the product continues what is in memory.
void lower_accumulated_product(Lowering& l, const FusedBody& body, NodeId dw) {
  const ir::Type& type = l.type(l.result());
  Product product;
  product.form = "tn";
  product.c = l.locate(l.result());
  product.a = l.locate(body.outer_operand(dw, 0));
  product.b = l.locate(body.outer_operand(dw, 1));
  product.m = type.shape[0];
  product.n = *type.shape[1].constant();
  product.k = l.type(body.outer_operand(dw, 0)).rows();
  product.accumulate = 1;
  lower_product(l, product);
}

/// add(kept, column_sum(dy))
void lower_accumulated_column_sum(Lowering& l, const FusedBody& body, NodeId sum) {
  const Value dy = body.outer_operand(sum, 0);
  lower_column_sum(l, body.graph.node(sum).attributes, l.pointer(l.result()), l.locate(dy), l.type(dy).rows(), 1);
}

}  // namespace

void lower_fused(Lowering& l) {
  const FusedBody body{l, *l.node().body};
  const std::string& kernel = l.attributes().text("kernel");
  if (const NodeId dw = body.find(OpKind::LinearDw); kernel == "product" && dw.valid()) {
    return lower_accumulated_product(l, body, dw);
  }
  for (OpKind op : {OpKind::Linear, OpKind::LinearDx}) {
    const NodeId product = body.find(op);
    if (kernel == "product" && product.valid()) return lower_product_with_epilogue(l, body, product);
  }
  if (const NodeId sum = body.find(OpKind::ColumnSum); kernel == "column_sum" && sum.valid()) {
    return lower_accumulated_column_sum(l, body, sum);
  }
  if (kernel == "gate") return lower_gate(l, body);
  if (kernel == "gate_grad") return lower_gate_grad(l, body);
  if (kernel == "residual_norm") return lower_residual_norm(l, body);
  if (kernel == "norm_grad") return lower_norm_grad_sum(l, body);
  ir::compiler_fault("no kernel '" + kernel + "' runs the body of '" + l.node().name + "'");
}

}  // namespace tfc::passes
