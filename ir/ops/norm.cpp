// Normalisation over the last axis.
#include <cmath>

#include "ir/ops/rules.h"

namespace tfc::ir {

// Layer normalisation (Ba, Kiros, Hinton 2016, arXiv:1607.06450).
//   x f[R,D], gamma f[D], beta? f[D] {eps} -> y f[R,D], mean f[R], rstd f[R]
// mean and rstd are results because the backward pass reads them.
void infer_LayerNorm(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1)) return;
  const Type& x = *c.operands[0];
  if (!need_type(c, 1, "gamma", {c.real, {x.width()}}) || !allow_type(c, 2, "beta", {c.real, {x.width()}}))
    return;
  c.results = {x, without_last(x), without_last(x)};
}

void eval_LayerNorm(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  const Tensor& gamma = need(c, 1);
  const Tensor* beta = operand(c, 2);
  const double eps = c.attributes.real("eps");
  const int64_t D = x.width();
  for (int64_t r = 0; r < x.rows(); ++r) {
    const double* row = x.row(r);
    double sum = 0, squares = 0;
    for (int64_t d = 0; d < D; ++d) sum += row[d];
    const double mean = sum / static_cast<double>(D);
    for (int64_t d = 0; d < D; ++d)
      squares += (row[d] - mean) * (row[d] - mean);  // two passes: no cancellation
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(D) + eps);
    for (int64_t d = 0; d < D; ++d)
      c.results[0].row(r)[d] = (row[d] - mean) * rstd * gamma[d] + (beta ? (*beta)[d] : 0.0);
    c.results[1][r] = mean;
    c.results[2][r] = rstd;
  }
}

// With n = (x - mean) * rstd and dn = dy * gamma:
//   dbeta = sum dy      dgamma = sum dy * n      dx = (dn - mean(dn) - n * mean(dn * n)) * rstd
void gradient_LayerNorm(GradientContext& c) {
  refuse_upstream(c, 1);
  const Value dy = c.upstream();
  if (!dy.valid()) return;
  const NodeId grad =
      c.add(OpKind::LayerNormGrad, {dy, c.operand(0), c.operand(1), c.result(1), c.result(2)}, {}, "grad");
  if (c.wanted(0)) c.give(0, {grad, 0});
  if (c.wanted(1)) c.give(1, {grad, 1});
  if (optional_operand(c, 2).valid() && c.wanted(2)) c.give(2, {grad, 2});
}

// layer_norm_grad (dy f[R,D], x f[R,D], gamma f[D], mean f[R], rstd f[R]) -> dx f[R,D], dgamma f[D], dbeta
// f[D]
void infer_LayerNormGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1)) return;
  const Type& dy = *c.operands[0];
  const Type columns{c.real, {dy.width()}};
  if (!need_type(c, 1, "x", dy) || !need_type(c, 2, "gamma", columns) ||
      !need_type(c, 3, "mean", without_last(dy)) || !need_type(c, 4, "rstd", without_last(dy)))
    return;
  c.results = {dy, columns, columns};
}

void eval_LayerNormGrad(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  const Tensor& x = need(c, 1);
  const Tensor& gamma = need(c, 2);
  Tensor& dx = c.results[0];
  Tensor& dgamma = c.results[1];
  Tensor& dbeta = c.results[2];
  const int64_t D = x.width();
  for (int64_t r = 0; r < x.rows(); ++r) {
    const double mean = need(c, 3)[r], rstd = need(c, 4)[r];
    double sum_dn = 0, sum_dn_n = 0;
    for (int64_t d = 0; d < D; ++d) {
      const double n = (x.row(r)[d] - mean) * rstd, dn = dy.row(r)[d] * gamma[d];
      sum_dn += dn;
      sum_dn_n += dn * n;
      dgamma[d] += dy.row(r)[d] * n;
      dbeta[d] += dy.row(r)[d];
    }
    const double mean_dn = sum_dn / static_cast<double>(D), mean_dn_n = sum_dn_n / static_cast<double>(D);
    for (int64_t d = 0; d < D; ++d) {
      const double n = (x.row(r)[d] - mean) * rstd, dn = dy.row(r)[d] * gamma[d];
      dx.row(r)[d] = (dn - mean_dn - n * mean_dn_n) * rstd;
    }
  }
}

// Root mean square normalisation (Zhang, Sennrich 2019, arXiv:1910.07467).
//   x f[R,D], gamma f[D] {eps} -> y f[R,D], rstd f[R]
void infer_RmsNorm(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1)) return;
  const Type& x = *c.operands[0];
  if (!need_type(c, 1, "gamma", {c.real, {x.width()}})) return;
  c.results = {x, without_last(x)};
}

void eval_RmsNorm(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  const Tensor& gamma = need(c, 1);
  const double eps = c.attributes.real("eps");
  const int64_t D = x.width();
  for (int64_t r = 0; r < x.rows(); ++r) {
    double squares = 0;
    for (int64_t d = 0; d < D; ++d) squares += x.row(r)[d] * x.row(r)[d];
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(D) + eps);
    for (int64_t d = 0; d < D; ++d) c.results[0].row(r)[d] = x.row(r)[d] * rstd * gamma[d];
    c.results[1][r] = rstd;
  }
}

// With n = x * rstd and dn = dy * gamma:   dgamma = sum dy * n      dx = (dn - n * mean(dn * n)) * rstd
void gradient_RmsNorm(GradientContext& c) {
  refuse_upstream(c, 1);
  const Value dy = c.upstream();
  if (!dy.valid()) return;
  const NodeId grad = c.add(OpKind::RmsNormGrad, {dy, c.operand(0), c.operand(1), c.result(1)}, {}, "grad");
  if (c.wanted(0)) c.give(0, {grad, 0});
  if (c.wanted(1)) c.give(1, {grad, 1});
}

// rms_norm_grad (dy f[R,D], x f[R,D], gamma f[D], rstd f[R]) -> dx f[R,D], dgamma f[D]
void infer_RmsNormGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1)) return;
  const Type& dy = *c.operands[0];
  const Type columns{c.real, {dy.width()}};
  if (!need_type(c, 1, "x", dy) || !need_type(c, 2, "gamma", columns) ||
      !need_type(c, 3, "rstd", without_last(dy)))
    return;
  c.results = {dy, columns};
}

void eval_RmsNormGrad(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  const Tensor& x = need(c, 1);
  const Tensor& gamma = need(c, 2);
  const int64_t D = x.width();
  for (int64_t r = 0; r < x.rows(); ++r) {
    const double rstd = need(c, 3)[r];
    double sum_dn_n = 0;
    for (int64_t d = 0; d < D; ++d) {
      const double n = x.row(r)[d] * rstd;
      sum_dn_n += dy.row(r)[d] * gamma[d] * n;
      c.results[1][d] += dy.row(r)[d] * n;
    }
    const double mean_dn_n = sum_dn_n / static_cast<double>(D);
    for (int64_t d = 0; d < D; ++d)
      c.results[0].row(r)[d] = (dy.row(r)[d] * gamma[d] - x.row(r)[d] * rstd * mean_dn_n) * rstd;
  }
}

}  // namespace tfc::ir
