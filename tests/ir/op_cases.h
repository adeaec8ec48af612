// One entry for each operation of ir/ops.def: operands of small odd sizes to run it on.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interpreter.h"

namespace tfc::ir {

struct OpCase {
  OpKind op;
  std::vector<Tensor> operands;  // absent() where there is none; real ones are differentiated
  Attributes attributes;
  bool mean = false;  // the input `mean` of losses
};

/// Cases of the operation; none where it has no entry.
std::vector<OpCase> cases_of(OpKind op);

/// An operand that is not there.
inline Tensor absent() { return Tensor(); }
inline bool is_absent(const Tensor& tensor) { return tensor.data.empty(); }

/// A case as a graph: input leaves "x0", "x1", ... and the node "op".
struct CaseGraph {
  Graph graph;
  std::vector<Value> leaves;
  NodeId node;
};
CaseGraph build(const OpCase& op_case);

}  // namespace tfc::ir
