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
};

/// linear with what follows it: an activation, a residual; the linear's own result and the last one may be needed
/// outside.
void lower_product_with_epilogue(Lowering& lowering, const FusedBody& body, ir::NodeId linear);

}  // namespace tfc::passes
