// How lowering functions read the body of a fused node.
#pragma once

#include "passes/lower/lowering.h"

namespace tfc::passes {

struct FusedBody {
  Lowering& lowering;
  const ir::Graph& graph;

  /// The first node of that kind; invalid when there is none.
  ir::NodeId find(ir::OpKind op) const;

  /// What the operand of a node of the body is outside; invalid when it is absent or made inside.
  ir::Value outer_operand(ir::NodeId inner, uint32_t slot) const;

  /// The fused node's result that a value of the body is; invalid when only the body sees it.
  ir::Value outer_result(ir::Value inner) const;
};

/// linear or linear_dx with what follows it: an activation or the slope of one, a residual; the product's own
/// result and the last one may be needed outside.
void lower_product_with_epilogue(Lowering& lowering, const FusedBody& body, ir::NodeId product);

/// multiply(activation(open), up), and its derivative: dopen, dup from dy, up, open.
void lower_gate(Lowering& lowering, const FusedBody& body);
void lower_gate_grad(Lowering& lowering, const FusedBody& body);

/// residual, and the norm of it.   norm_grad, and the sum that dx goes into.
void lower_residual_norm(Lowering& lowering, const FusedBody& body);
void lower_norm_grad_sum(Lowering& lowering, const FusedBody& body);

}  // namespace tfc::passes
