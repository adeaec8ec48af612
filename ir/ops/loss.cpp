// From hidden states to one row per sequence, and to the loss: the output product and cross entropy in one
// operation, so that no graph ever holds the logits of a whole batch.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/rules.h"

namespace tfc::ir {

// ---- pool ----

static bool known_pool(InferContext& c) {
  const std::string& kind = c.attributes.text("kind");
  if (kind == "first" || kind == "mean" || kind == "last") return true;
  return fail(c, "attribute kind is '" + kind + "', expected first, mean or last");
}

/// The weight of token (b,t) in the pooled row: 1 for the first or last real token, 1/n for each of n real
/// ones.
static double pool_weight(const std::string& kind, const Tensor* mask, int64_t b, int64_t t, int64_t T) {
  if (!is_real(mask, b * T + t)) return 0;
  int64_t before = 0, after = 0;  // real tokens on either side
  for (int64_t s = 0; s < T; ++s) {
    if (!is_real(mask, b * T + s)) continue;
    before += s < t;
    after += s > t;
  }
  if (kind == "first") return before == 0;
  if (kind == "last") return after == 0;
  return 1 / static_cast<double>(before + 1 + after);
}

// pool (x f[B,T,D], mask? u8[B,T]) {kind} -> f[B,D]
void infer_Pool(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3, 3) || !known_pool(c)) return;
  const Type& x = *c.operands[0];
  if (!allow_type(c, 1, "mask", {DType::U8, {x.shape[0], x.shape[1]}})) return;
  c.results = {{c.real, {x.shape[0], x.shape[2]}}};
}

void eval_Pool(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  const int64_t B = x.shape[0], T = x.shape[1];
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t) {
      const double weight = pool_weight(c.attributes.text("kind"), operand(c, 1), b, t, T);
      if (weight == 0) continue;  // not read
      for (int64_t d = 0; d < x.width(); ++d) c.results[0].row(b)[d] += weight * x.row(b * T + t)[d];
    }
}

// dx[b,t] = weight of (b,t) * dy[b]
void gradient_Pool(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  Attributes attributes = c.node().attributes;
  attributes.set("tokens", Dim(type_of(c, c.operand(0)).shape[1]));
  c.give(0, {c.add(OpKind::PoolGrad, {c.upstream(), optional_operand(c, 1)}, std::move(attributes), "dx")});
}

// pool_grad (dy f[B,D], mask? u8[B,T]) {kind, tokens} -> f[B,T,D]
void infer_PoolGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 2, 2) || !known_pool(c)) return;
  const Type& dy = *c.operands[0];
  const Dim& tokens = c.attributes.dim("tokens");
  if (!allow_type(c, 1, "mask", {DType::U8, {dy.shape[0], tokens}})) return;
  c.results = {{c.real, {dy.shape[0], tokens, dy.shape[1]}}};
}

void eval_PoolGrad(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  Tensor& dx = c.results[0];
  const int64_t B = dx.shape[0], T = dx.shape[1];
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t) {
      const double weight = pool_weight(c.attributes.text("kind"), operand(c, 1), b, t, T);
      if (weight == 0) continue;
      for (int64_t d = 0; d < dx.width(); ++d) dx.row(b * T + t)[d] = weight * dy.row(b)[d];
    }
}

// any_real (mask u8[B,T]) -> u8[B]
void infer_AnyReal(InferContext& c) {
  if (need(c, 0, "mask", DType::U8, 2, 2)) c.results = {without_last(*c.operands[0])};
}

void eval_AnyReal(const EvalContext& c) {
  const Tensor& mask = need(c, 0);
  for (int64_t i = 0; i < mask.elements(); ++i)
    if (is_real(&mask, i)) c.results[0][i / mask.width()] = 1;
}

// A mask has no derivative
void gradient_AnyReal(GradientContext&) {}

// ---- output product and the loss over it ----

static const std::string kCrossEntropy = "cross_entropy", kBinary = "binary_cross_entropy", kMse = "mse";

static std::string loss_kind(const Attributes& attributes) { return attributes.text("kind", kCrossEntropy); }

// hidden f[R,D], w f[N,D], bias? f[N], targets i32[R] | f[R,N], mask? u8[R], weights? f[R]
static bool need_loss_operands(InferContext& c) {
  const std::string kind = loss_kind(c.attributes);
  if (kind != kCrossEntropy && kind != kBinary && kind != kMse)
    return fail(c, "attribute kind is '" + kind + "', expected cross_entropy, binary_cross_entropy or mse");
  if (!need(c, 0, "hidden", c.real, 1) || !need(c, 1, "w", c.real, 2, 2)) return false;
  const Type& hidden = *c.operands[0];
  const Type& w = *c.operands[1];
  const Type rows = without_last(hidden);
  const Type targets = kind == kCrossEntropy ? with_dtype(rows, DType::I32) : with_last(hidden, w.shape[0]);
  return need_type(c, 1, "w", {c.real, {w.shape[0], hidden.width()}}) &&
         allow_type(c, 2, "bias", {c.real, {w.shape[0]}}) && need_type(c, 3, "targets", targets) &&
         allow_type(c, 4, "mask", with_dtype(rows, DType::U8)) && allow_type(c, 5, "weights", rows);
}

namespace {

double log_sum_exp(const std::vector<double>& x) {
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const double value : x) greatest = std::fmax(greatest, value);
  for (const double value : x) sum += std::exp(value - greatest);
  return greatest + std::log(sum);
}

/// One row of the output product with its loss and the gradient of it.
struct LossRow {
  bool counted = false;
  double weight = 1, loss = 0, log_p = 0;  // log_p: cross entropy, of the target
  std::vector<double> gradient;            // [N], of the loss by the row's outputs
};

void cross_entropy(LossRow& row, const std::vector<double>& x, double target, double smoothing) {
  const auto N = static_cast<double>(x.size());
  TFC_CHECK(target >= 0 && target < N, "target " + std::to_string(target) + " is outside a vocabulary of " +
                                           std::to_string(x.size()));
  const double log_sum = log_sum_exp(x);
  row.log_p = x[static_cast<size_t>(target)] - log_sum;
  row.loss = (1 - smoothing) * -row.log_p;
  for (const double value : x) {
    if (smoothing != 0) row.loss += smoothing / N * (log_sum - value);
    row.gradient.push_back(std::exp(value - log_sum) - smoothing / N);
  }
  row.gradient[static_cast<size_t>(target)] -= 1 - smoothing;
}

void binary_cross_entropy(LossRow& row, const std::vector<double>& x, const double* targets) {
  const auto N = static_cast<double>(x.size());
  for (size_t n = 0; n < x.size(); ++n) {
    const double above = x[n] > 0 ? x[n] : 0, small = std::exp(-std::fabs(x[n]));  // of log(1 + exp(x))
    row.loss += (above + std::log1p(small) - targets[n] * x[n]) / N;
    row.gradient.push_back(((x[n] > 0 ? 1 : small) / (1 + small) - targets[n]) / N);
  }
}

void squared_error(LossRow& row, const std::vector<double>& x, const double* targets) {
  const auto N = static_cast<double>(x.size());
  for (size_t n = 0; n < x.size(); ++n) {
    const double difference = x[n] - targets[n];
    row.loss += difference * difference / N;
    row.gradient.push_back(2 * difference / N);
  }
}

/// Nothing of a row that does not count is read.
LossRow loss_row(const EvalContext& c, int64_t r) {
  const Tensor& hidden = need(c, 0);
  const Tensor& w = need(c, 1);
  const Tensor& targets = need(c, 3);
  const Tensor *bias = operand(c, 2), *weights = operand(c, 5);
  const std::string kind = loss_kind(c.attributes);
  LossRow row;
  if (!is_real(operand(c, 4), r)) return row;
  if (kind == kCrossEntropy && targets[r] == static_cast<double>(c.attributes.integer("ignore_index"))) return row;
  if (weights) row.weight = (*weights)[r];
  row.counted = row.weight != 0;
  if (!row.counted) return row;
  std::vector<double> x;
  for (int64_t n = 0; n < w.shape[0]; ++n) {
    x.push_back(bias ? (*bias)[n] : 0);
    for (int64_t d = 0; d < hidden.width(); ++d) x.back() += hidden.row(r)[d] * w.row(n)[d];
  }
  if (kind == kCrossEntropy) cross_entropy(row, x, targets[r], c.attributes.real("smoothing", 0.0));
  if (kind == kBinary) binary_cross_entropy(row, x, targets.row(r));
  if (kind == kMse) squared_error(row, x, targets.row(r));
  return row;
}

int64_t row_count(const EvalContext& c) { return need(c, 0).elements() / need(c, 0).width(); }

}  // namespace

// linear_loss (hidden, w, bias?, targets, mask?, weights?) {kind, ignore_index, smoothing, share} -> sum, count f64[]
void infer_LinearLoss(InferContext& c) {
  if (need_loss_operands(c)) c.results = {scalar_f64(), scalar_f64()};
}

void eval_LinearLoss(const EvalContext& c) {
  for (int64_t r = 0; r < row_count(c); ++r) {
    const LossRow row = loss_row(c, r);
    if (!row.counted) continue;
    c.results[0][0] += row.weight * row.loss;
    c.results[1][0] += row.weight;
  }
}

// The loss is where differentiation starts: its upstream is one. Loss and gradients come out of one
// operation, which takes the place of the loss; the train entry's input `mean` says whether of the sum or of
// the mean.
void gradient_LinearLoss(GradientContext& c) {
  const NodeId grad = c.add(OpKind::LinearLossGrad,
                            {c.operand(0), c.operand(1), c.operand(2), c.operand(3), optional_operand(c, 4),
                             optional_operand(c, 5), c.mean_flag()},
                            c.node().attributes, "grad");
  c.replace_result(0, {grad, 0});
  c.replace_result(1, {grad, 1});
  for (uint32_t slot = 0; slot < 3; ++slot)
    if (c.operand(slot).valid() && c.wanted(slot)) c.give(slot, {grad, 2 + slot});
}

// linear_loss_grad (hidden, w, bias?, targets, mask?, weights?, mean f64[]) -> sum, count, dhidden, dw, dbias
void infer_LinearLossGrad(InferContext& c) {
  if (!need_loss_operands(c) || !need_type(c, 6, "mean", scalar_f64())) return;
  const Type& w = *c.operands[1];
  c.results = {scalar_f64(), scalar_f64(), *c.operands[0], w, {c.real, {w.shape[0]}}};
}

// With x = hidden W^T + bias, of each counted row, times share * weight, and 1/count for the mean:
//   cross_entropy         dx_n = p_n - (1-e) [n = target] - e/N
//   binary_cross_entropy  dx_n = (sigmoid(x_n) - target_n) / N
//   mse                   dx_n = 2 (x_n - target_n) / N
//   dhidden = dx W      dw = dx^T hidden      dbias = sum of dx
void eval_LinearLossGrad(const EvalContext& c) {
  const Tensor& hidden = need(c, 0);
  const Tensor& w = need(c, 1);
  eval_LinearLoss(c);
  const double share = c.attributes.real("share", 1.0);
  const double upstream = need(c, 6)[0] != 0 ? share / c.results[1][0] : share;
  for (int64_t r = 0; r < row_count(c); ++r) {
    const LossRow row = loss_row(c, r);
    if (!row.counted) continue;
    for (int64_t n = 0; n < w.shape[0]; ++n) {
      const double dx = upstream * row.weight * row.gradient[static_cast<size_t>(n)];
      for (int64_t d = 0; d < hidden.width(); ++d) {
        c.results[2].row(r)[d] += dx * w.row(n)[d];
        c.results[3].row(n)[d] += dx * hidden.row(r)[d];
      }
      c.results[4][n] += dx;
    }
  }
}

// linear_logprob (hidden, w, bias?, targets, mask?, weights?) {ignore_index} -> f[R]
void infer_LinearLogprob(InferContext& c) {
  if (need_loss_operands(c)) c.results = {without_last(*c.operands[0])};
}

void eval_LinearLogprob(const EvalContext& c) {
  for (int64_t r = 0; r < row_count(c); ++r) c.results[0][r] = loss_row(c, r).log_p;
}

}  // namespace tfc::ir
