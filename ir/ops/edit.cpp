// What a caller makes of a value inside the model: the memory that says so is described in ir/edits.h.
#include "ir/ops/rules.h"

namespace tfc::ir {

namespace {

enum How { kKeep, kReplace, kAdd };

bool infer_how(InferContext& c, uint32_t slot) {
  const Type& x = *c.operands[0];
  if (!need_type(c, slot, "how", with_dtype(x, DType::U8))) return false;
  if (operand_type(c, slot + 1) == nullptr) return true;
  if (x.rank() != 3) return fail(c, "an edit with a mask is of rows [B,T,W], not " + x.text());
  return need_type(c, slot + 1, "mask", {DType::U8, {x.shape[0], x.shape[1]}});
}

/// What is done with element i: masked rows are kept.
int64_t how_at(const EvalContext& c, size_t slot, int64_t i) {
  const Tensor& how = need(c, slot);
  const bool real = is_real(operand(c, slot + 1), i / how.width());
  return real ? static_cast<int64_t>(how[i]) : int64_t{kKeep};
}

}  // namespace

// edit (x, value, how, mask?)
void infer_Edit(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1) || !need_type(c, 1, "value", *c.operands[0]) || !infer_how(c, 2)) return;
  c.results = {*c.operands[0]};
}

void eval_Edit(const EvalContext& c) {
  const Tensor &x = need(c, 0), &value = need(c, 1);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t how = how_at(c, 2, i);
    c.results[0][i] = how == kReplace ? value[i] : how == kAdd ? x[i] + value[i] : x[i];
  }
}

// dx = dy, but 0 where x was replaced      dvalue = dy where something was done (which no library asks for)
void gradient_Edit(GradientContext& c) {
  const Value dy = c.upstream(), how = c.operand(2), mask = optional_operand(c, 3);
  if (!dy.valid()) return;
  if (c.wanted(0)) c.give(0, {c.add(OpKind::EditGrad, {dy, how, mask}, {}, "dx")});
  if (c.wanted(1)) c.give(1, {c.add(OpKind::Edit, {c.zeros(type_of(c, dy)), dy, how, mask}, {}, "dvalue")});
}

// edit_grad (dy, how, mask?)
void infer_EditGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1) || !infer_how(c, 1)) return;
  c.results = {*c.operands[0]};
}

void eval_EditGrad(const EvalContext& c) {
  for (int64_t i = 0; i < c.results[0].elements(); ++i)
    c.results[0][i] = how_at(c, 1, i) == kReplace ? 0 : need(c, 0)[i];
}

}  // namespace tfc::ir
