// What a derivative rule sees: it reads operands, results and upstream gradients of one node, adds nodes to
// the same graph, and hands gradients to operands. passes/differentiate.cpp only walks and accumulates.
#pragma once

#include "ir/graph.h"

namespace tfc::ir {

class GradientContext {
 public:
  virtual ~GradientContext() = default;
  virtual const Node& node() const = 0;
  virtual Value operand(uint32_t slot) const = 0;  // invalid when absent
  virtual size_t operand_count() const = 0;
  virtual Value result(uint32_t index = 0) const = 0;
  virtual Value upstream(uint32_t index = 0) const = 0;  // invalid: nothing flows into that result
  virtual bool wanted(uint32_t slot) const = 0;          // does anybody need this operand's gradient?
  /// New primitive, named after the node: "<node>.<suffix>".
  virtual NodeId add(OpKind op, const std::vector<Value>& operands, Attributes attributes = {},
                     std::string_view suffix = {}) = 0;
  /// A value of zeros of that type.
  virtual Value zeros(const Type& type) = 0;
  virtual void give(uint32_t slot, Value gradient) = 0;  // adds to what the operand has received
  /// The input `mean` (f64[]) of a train entry: linear_loss asks it what to differentiate.
  virtual Value mean_flag() = 0;
  /// The rule replaces the node's own result (loss and gradients in one go).
  virtual void replace_result(uint32_t index, Value value) = 0;
  virtual Graph& graph() = 0;
};

/// Derivative rule of a primitive by kind (generated dispatch); a kind without one is a compiler fault.
void gradient(OpKind kind, GradientContext& context);

}  // namespace tfc::ir
