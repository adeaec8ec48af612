// Products with a weight matrix: y = x W^T + b, its three gradients, and the first of these as y = x W.
#include "ir/ops/rules.h"

namespace tfc::ir {

// linear (x f[R,K], w f[N,K], b? f[N]) -> f[R,N]
void infer_Linear(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1) || !need(c, 1, "w", c.real, 2, 2)) return;
  const Type& x = *c.operands[0];
  const Type& w = *c.operands[1];
  if (w.shape[1] != x.width()) {
    fail(c, "w is " + w.text() + ", expected " + x.width().text() + " columns, the width of x");
    return;
  }
  if (!allow_type(c, 2, "b", {c.real, {w.shape[0]}})) return;
  c.results = {with_last(x, w.shape[0])};
}

void eval_Linear(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  const Tensor& w = need(c, 1);
  const Tensor* b = operand(c, 2);
  Tensor& y = c.results[0];
  const int64_t K = x.width(), N = y.width();
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t n = 0; n < N; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += x.row(r)[k] * w.row(n)[k];
      y.row(r)[n] = b ? sum + (*b)[n] : sum;
    }
}

// With y = x W^T + b:   dx = dy W      dW = dy^T x      db = sum of dy's rows
void gradient_Linear(GradientContext& c) {
  const Value dy = c.upstream();
  if (!dy.valid()) return;
  if (c.wanted(0)) c.give(0, {c.add(OpKind::LinearDx, {dy, c.operand(1)}, {}, "dx")});
  if (c.wanted(1)) c.give(1, {c.add(OpKind::LinearDw, {dy, c.operand(0)}, {}, "dw")});
  if (optional_operand(c, 2).valid() && c.wanted(2)) c.give(2, {c.add(OpKind::ColumnSum, {dy}, {}, "db")});
}

// linear_dx (dy f[R,N], w f[N,K]) -> f[R,K]: dY W
void infer_LinearDx(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1) || !need(c, 1, "w", c.real, 2, 2)) return;
  const Type& dy = *c.operands[0];
  const Type& w = *c.operands[1];
  if (w.shape[0] != dy.width()) {
    fail(c, "w is " + w.text() + ", expected " + dy.width().text() + " rows, the width of dy");
    return;
  }
  c.results = {with_last(dy, w.shape[1])};
}

void eval_LinearDx(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  const Tensor& w = need(c, 1);
  Tensor& dx = c.results[0];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < dy.width(); ++n)
      for (int64_t k = 0; k < dx.width(); ++k) dx.row(r)[k] += dy.row(r)[n] * w.row(n)[k];
}

// With y = x W:   dx = dy W^T      dW = x^T dy
void gradient_LinearDx(GradientContext& c) {
  const Value dy = c.upstream();
  if (!dy.valid()) return;
  if (c.wanted(0)) c.give(0, {c.add(OpKind::Linear, {dy, c.operand(1)}, {}, "dx")});
  if (c.wanted(1)) c.give(1, {c.add(OpKind::LinearDw, {c.operand(0), dy}, {}, "dw")});
}

// linear_dw (dy f[R,N], x f[R,K]) -> f[N,K]: dY^T X
void infer_LinearDw(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1) || !need(c, 1, "x", c.real, 1)) return;
  const Type& dy = *c.operands[0];
  const Type& x = *c.operands[1];
  if (!need_type(c, 1, "x", with_last(dy, x.width()))) return;
  c.results = {{c.real, {dy.width(), x.width()}}};
}

void eval_LinearDw(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  const Tensor& x = need(c, 1);
  Tensor& dw = c.results[0];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < dy.width(); ++n)
      for (int64_t k = 0; k < x.width(); ++k) dw.row(n)[k] += dy.row(r)[n] * x.row(r)[k];
}

// column_sum (dy f[R,N]) {cancelled = [from, to]?} -> f[N]
void infer_ColumnSum(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1)) return;
  const auto width = c.operands[0]->width().constant();
  if (c.attributes.has("cancelled")) {
    const std::vector<int64_t>& range = c.attributes.list("cancelled");
    if (range.size() != 2 || range[0] < 0 || range[0] > range[1] || (width && range[1] > *width)) {
      c.error = "cancelled is [from, to], columns of dy";
      return;
    }
  }
  c.results = {{c.real, {c.operands[0]->width()}}};
}

void eval_ColumnSum(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < dy.width(); ++n) c.results[0][n] += dy.row(r)[n];
  if (!c.attributes.has("cancelled")) return;
  const std::vector<int64_t>& range = c.attributes.list("cancelled");
  for (int64_t n = range[0]; n < range[1]; ++n) c.results[0][n] -= c.results[0][n];  // NaN stays
}

}  // namespace tfc::ir
