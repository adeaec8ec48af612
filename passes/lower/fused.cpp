// Fused nodes: one kernel for the primitives of a body. Each kernel knows the few bodies that the fusing
// passes make.
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

/// One primitive of a body, lowered as if it stood outside: its operands are the fused node's, and a result
/// that the body adds to something kept lives where the sum does.
class LoweringInBody : public Lowering {
 public:
  LoweringInBody(const FusedBody& body, NodeId inner) : body_(body), outer_(body.lowering), inner_(inner) {}

  const ir::Module& module() const override { return outer_.module(); }
  const ir::Graph& graph() const override { return body_.graph; }
  NodeId id() const override { return inner_; }
  bool used(Value value) const override { return outer_.used(outside(value)); }
  Location locate(Value value) override { return outer_.locate(outside(value)); }
  ProductRows product_rows(Value value) override { return outer_.product_rows(outside(value)); }
  bool accumulates(Value result) const override { return sum_of(result).valid(); }
  ir::Arg temporary(const std::string& name, ir::Dim bytes) override { return outer_.temporary(name, bytes); }
  ir::Arg constant(const std::string& name, const std::vector<double>& values) override {
    return outer_.constant(name, values);
  }
  void call(ir::Record record) override { outer_.call(std::move(record)); }
  void loop(ir::Dim iterations, const std::function<void()>& body) override {
    outer_.loop(std::move(iterations), body);
  }

 private:
  NodeId sum_of(Value result) const {
    for (const ir::Use& use : body_.graph.uses(result)) {
      if (body_.graph.node(use.node).op == OpKind::Add) return use.node;
    }
    return {};
  }

  Value outside(Value value) const {
    if (!value.valid()) return {};
    const ir::Node& producer = body_.graph.node(value.node);
    if (producer.op == OpKind::Argument) {
      return outer_.operand(static_cast<uint32_t>(producer.attributes.integer("index")));
    }
    const NodeId sum = sum_of(value);
    return body_.outer_result(sum.valid() ? Value{sum, 0} : value);
  }

  const FusedBody& body_;
  Lowering& outer_;
  const NodeId inner_;
};

/// add(kept, gradient): the gradient's own kernel, which adds to memory.
void lower_accumulation(const FusedBody& body) {
  for (NodeId id : body.graph.nodes()) {
    LoweringInBody inside(body, id);
    switch (body.graph.node(id).op) {
      case OpKind::LinearDw:
        return lower_LinearDw(inside);
      case OpKind::ColumnSum:
        return lower_ColumnSum(inside);
      case OpKind::ExpertLinearDw:
        return lower_ExpertLinearDw(inside);
      case OpKind::ExpertColumnSum:
        return lower_ExpertColumnSum(inside);
      case OpKind::EmbeddingGrad:
        return lower_EmbeddingGrad(inside);
      case OpKind::LinearLossGrad:
        return lower_LinearLossGrad(inside);
      default:
        continue;
    }
  }
  ir::compiler_fault("'" + body.lowering.node().name + "' accumulates nothing that a kernel could");
}

}  // namespace

void lower_fused(Lowering& l) {
  const FusedBody body{l, *l.node().body};
  const std::string& kernel = l.attributes().text("kernel");
  if (kernel == "accumulate") return lower_accumulation(body);
  for (OpKind op : {OpKind::Linear, OpKind::LinearDx, OpKind::ExpertLinear, OpKind::ExpertLinearDx}) {
    const NodeId product = body.find(op);
    if (kernel == "product" && product.valid()) return lower_product_with_epilogue(l, body, product);
  }
  if (kernel == "gate") return lower_gate(l, body);
  if (kernel == "gate_grad") return lower_gate_grad(l, body);
  if (kernel == "residual_norm") return lower_residual_norm(l, body);
  if (kernel == "norm_grad") return lower_norm_grad_sum(l, body);
  ir::compiler_fault("no kernel '" + kernel + "' runs the body of '" + l.node().name + "'");
}

}  // namespace tfc::passes
