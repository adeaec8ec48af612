// Fused nodes over rows: gates, and norms with the sum before or after them.
#include "ir/check.h"
#include "passes/lower/fused.h"
#include "passes/lower/norm.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

void lower_gate(Lowering& l, const FusedBody& body) {
  const NodeId activation = body.find(OpKind::Activation), multiply = body.find(OpKind::Multiply);
  std::optional<DropoutCall> drop;
  if (const NodeId dropout = body.find(OpKind::Dropout); dropout.valid())
    drop = dropout_call(l, body.graph.node(dropout).attributes, body.outer_operand(dropout, 1));
  elementwise(l, {{"op", std::string("gate")}, {"kind", body.graph.node(activation).attributes.text("kind")}},
              l.locate(l.result()),
              {l.locate(body.outer_operand(activation, 0)), l.locate(body.outer_operand(multiply, 1))},
              l.type(l.result()), kActivationFlops + 1, drop);
}

/// dup = activation(open) * dy      dopen = activation'(open) * (dy * up)
void lower_gate_grad(Lowering& l, const FusedBody& body) {
  const NodeId slope = body.find(OpKind::ActivationGrad), activation = body.find(OpKind::Activation);
  const NodeId inner = body.graph.operand(slope, 0).node;
  const std::string kind = body.graph.node(slope).attributes.text("kind");
  const Location open = l.locate(body.outer_operand(activation, 0));
  const Location dy = l.locate(body.outer_operand(inner, 0)), up = l.locate(body.outer_operand(inner, 1));
  if (l.used(l.result(1))) {
    elementwise(l, {{"op", std::string("gate")}, {"kind", kind}}, l.locate(l.result(1)), {open, dy},
                l.type(l.result(1)), kActivationFlops + 1);
  }
  if (l.used(l.result(0))) {
    elementwise(l, {{"op", std::string("gate_grad")}, {"kind", kind}}, l.locate(l.result(0)), {dy, up, open},
                l.type(l.result(0)), kActivationFlops + 2);
  }
}

namespace {

/// An operand of the sum, or what is dropped for it.
NormCall::Term added_term(Lowering& l, const FusedBody& body, NodeId sum, uint32_t slot) {
  const NodeId inner = body.graph.operand(sum, slot).node;
  if (body.graph.node(inner).op != OpKind::Dropout) return {l.locate(body.outer_operand(sum, slot)), {}};
  return {l.locate(body.outer_operand(inner, 0)),
          dropout_call(l, body.graph.node(inner).attributes, body.outer_operand(inner, 1))};
}

}  // namespace

void lower_residual_norm(Lowering& l, const FusedBody& body) {
  const bool centred = body.find(OpKind::LayerNorm).valid();
  const NodeId norm = body.find(centred ? OpKind::LayerNorm : OpKind::RmsNorm),
               sum = body.find(OpKind::Residual);
  NormCall call;
  call.kind = centred ? "layer" : "rms";
  call.type = body.graph.type({norm, 0});
  call.eps = body.graph.node(norm).attributes.real("eps");
  call.scale = body.graph.node(sum).attributes.real("scale");
  call.x = l.locate(body.outer_operand(sum, 0));
  for (uint32_t slot = 1; slot < body.graph.operand_count(sum); ++slot) {
    call.added.push_back(added_term(l, body, sum, slot));
  }
  call.gamma = l.pointer(body.outer_operand(norm, 1));
  call.beta = l.pointer(centred ? body.outer_operand(norm, 2) : Value{});
  call.mean = l.pointer(centred ? body.outer_result({norm, 1}) : Value{});
  call.rstd = l.pointer(body.outer_result({norm, centred ? 2u : 1u}));
  call.real = l.real_rows(l.result(0));
  call.sum = l.locate(body.outer_result({sum, 0}));
  call_norm(l, call);
}

void lower_norm_grad_sum(Lowering& l, const FusedBody& body) {
  const bool centred = body.find(OpKind::LayerNormGrad).valid();
  const NodeId grad = body.find(centred ? OpKind::LayerNormGrad : OpKind::RmsNormGrad),
               add = body.find(OpKind::Add);
  NormGradCall call;
  call.kind = centred ? "layer" : "rms";
  call.type = body.graph.type({grad, 0});
  call.dx = l.locate(l.result(0));
  if (add.valid()) call.added = l.locate(body.outer_operand(add, body.graph.operand(add, 0).node == grad ? 1 : 0));
  call.dy = l.locate(body.outer_operand(grad, 0));
  call.x = l.locate(body.outer_operand(grad, 1));
  call.gamma = l.pointer(body.outer_operand(grad, 2));
  call.mean = l.pointer(centred ? body.outer_operand(grad, 3) : Value{});
  call.rstd = l.pointer(body.outer_operand(grad, centred ? 4 : 3));
  call.dgamma = body.outer_result({grad, 1});
  if (centred) call.dbeta = body.outer_result({grad, 2});
  if (const NodeId dropout = body.find(OpKind::Dropout); dropout.valid()) {
    call.dropped = l.locate(body.outer_result({dropout, 0}));
    call.dropout = dropout_call(l, body.graph.node(dropout).attributes, body.outer_operand(dropout, 1));
  }
  call_norm_grad(l, call);
}

}  // namespace tfc::passes
