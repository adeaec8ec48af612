// Products of rows by expert, each expert's with its own weight, and their gradients.
#include "ir/ops/rules.h"

namespace tfc::ir {

namespace {

/// Operand `slot`, the weights or biases of all experts below each other, with the rows of one of them.
bool rows_of_expert(InferContext& c, uint32_t slot, const char* name, uint32_t starts_slot, Dim& rows) {
  if (!need(c, slot, name, c.real, 1, 2) || !need(c, starts_slot, "starts", DType::I32, 1, 1)) return false;
  const auto all = c.operands[slot]->shape[0].constant(),
             starts = c.operands[starts_slot]->shape[0].constant();
  if (!all || !starts || *starts < 2 || *all % (*starts - 1) != 0) {
    return fail(c, std::string(name) + " is " + c.operands[slot]->text() +
                       ", expected as many rows for each expert, with starts " +
                       c.operands[starts_slot]->text());
  }
  rows = *all / (*starts - 1);
  return true;
}

/// Calls body(expert, row) for every row that belongs to one.
template <typename Body>
void for_rows(const Tensor& starts, const Body& body) {
  for (int64_t e = 0; e + 1 < starts.elements(); ++e)
    for (auto r = static_cast<int64_t>(starts[e]); r < static_cast<int64_t>(starts[e + 1]); ++r) body(e, r);
}

}  // namespace

// expert_linear (x f[R,J,K], w f[X*N,K], b? f[X*N], starts i32[X+1]) -> f[R,J,N]
void infer_ExpertLinear(InferContext& c) {
  Dim n;
  if (!need(c, 0, "x", c.real, 3) || !need(c, 1, "w", c.real, 2, 2) || !rows_of_expert(c, 1, "w", 3, n))
    return;
  const Type& w = *c.operands[1];
  if (!need_type(c, 1, "w", {c.real, {w.shape[0], c.operands[0]->width()}})) return;
  if (allow_type(c, 2, "b", {c.real, {w.shape[0]}})) c.results = {with_last(*c.operands[0], n)};
}

void eval_ExpertLinear(const EvalContext& c) {
  const Tensor &x = need(c, 0), &w = need(c, 1);
  const Tensor* b = operand(c, 2);
  Tensor& y = c.results[0];
  for_rows(need(c, 3), [&](int64_t e, int64_t r) {
    for (int64_t n = 0; n < y.width(); ++n) {
      double sum = b ? (*b)[e * y.width() + n] : 0;
      for (int64_t k = 0; k < x.width(); ++k) sum += x.row(r)[k] * w.row(e * y.width() + n)[k];
      y.row(r)[n] = sum;
    }
  });
}

// Of each expert's rows:   dx = dy W_e      dW_e = dy^T x      db_e = sum of dy's rows
void gradient_ExpertLinear(GradientContext& c) {
  const Value dy = c.upstream(), starts = c.operand(3);
  if (!dy.valid()) return;
  if (c.wanted(0)) c.give(0, {c.add(OpKind::ExpertLinearDx, {dy, c.operand(1), starts}, {}, "dx")});
  if (c.wanted(1)) c.give(1, {c.add(OpKind::ExpertLinearDw, {dy, c.operand(0), starts}, {}, "dw")});
  if (c.operand(2).valid() && c.wanted(2))
    c.give(2, {c.add(OpKind::ExpertColumnSum, {dy, starts}, {}, "db")});
}

// expert_linear_dx (dy f[R,J,N], w f[X*N,K], starts i32[X+1]) -> f[R,J,K]
void infer_ExpertLinearDx(InferContext& c) {
  Dim n;
  if (!need(c, 0, "dy", c.real, 3) || !need(c, 1, "w", c.real, 2, 2) || !rows_of_expert(c, 1, "w", 2, n))
    return;
  if (!need_type(c, 0, "dy", with_last(*c.operands[0], n))) return;
  c.results = {with_last(*c.operands[0], c.operands[1]->width())};
}

void eval_ExpertLinearDx(const EvalContext& c) {
  const Tensor &dy = need(c, 0), &w = need(c, 1);
  Tensor& dx = c.results[0];
  for_rows(need(c, 2), [&](int64_t e, int64_t r) {
    for (int64_t n = 0; n < dy.width(); ++n)
      for (int64_t k = 0; k < dx.width(); ++k) dx.row(r)[k] += dy.row(r)[n] * w.row(e * dy.width() + n)[k];
  });
}

// expert_linear_dw (dy f[R,J,N], x f[R,J,K], starts i32[X+1]) -> f[X*N,K]
void infer_ExpertLinearDw(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 3) || !need(c, 1, "x", c.real, 3) || !need(c, 2, "starts", DType::I32, 1, 1))
    return;
  const Type &dy = *c.operands[0], &x = *c.operands[1];
  if (!need_type(c, 1, "x", with_last(dy, x.width()))) return;
  c.results = {{c.real, {dy.width() * (c.operands[2]->shape[0] - 1), x.width()}}};
}

void eval_ExpertLinearDw(const EvalContext& c) {
  const Tensor &dy = need(c, 0), &x = need(c, 1);
  for_rows(need(c, 2), [&](int64_t e, int64_t r) {
    for (int64_t n = 0; n < dy.width(); ++n)
      for (int64_t k = 0; k < x.width(); ++k)
        c.results[0].row(e * dy.width() + n)[k] += dy.row(r)[n] * x.row(r)[k];
  });
}

// expert_column_sum (dy f[R,J,N], starts i32[X+1]) -> f[X*N]
void infer_ExpertColumnSum(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 3) || !need(c, 1, "starts", DType::I32, 1, 1)) return;
  c.results = {{c.real, {c.operands[0]->width() * (c.operands[1]->shape[0] - 1)}}};
}

void eval_ExpertColumnSum(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  for_rows(need(c, 1), [&](int64_t e, int64_t r) {
    for (int64_t n = 0; n < dy.width(); ++n) c.results[0][e * dy.width() + n] += dy.row(r)[n];
  });
}

}  // namespace tfc::ir
