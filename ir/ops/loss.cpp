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

// ---- output product and cross entropy ----

// hidden f[R,D], w f[V,D], bias? f[V], targets i32[R], mask? u8[R]
static bool need_loss_operands(InferContext& c) {
  if (!need(c, 0, "hidden", c.real, 1) || !need(c, 1, "w", c.real, 2, 2)) return false;
  const Type& hidden = *c.operands[0];
  const Type& w = *c.operands[1];
  const Type rows = without_last(hidden);
  return need_type(c, 1, "w", {c.real, {w.shape[0], hidden.width()}}) &&
         allow_type(c, 2, "bias", {c.real, {w.shape[0]}}) &&
         need_type(c, 3, "targets", with_dtype(rows, DType::I32)) &&
         allow_type(c, 4, "mask", with_dtype(rows, DType::U8));
}

namespace {

/// One row of the output product, log-normalised.
struct LossRow {
  bool counted = false;
  int64_t target = 0;
  std::vector<double> log_p;  // [V]
};

/// Nothing of a row that does not count is read.
LossRow loss_row(const EvalContext& c, int64_t r) {
  const Tensor& hidden = need(c, 0);
  const Tensor& w = need(c, 1);
  const Tensor* bias = operand(c, 2);
  LossRow row;
  if (!is_real(operand(c, 4), r)) return row;
  const double target = need(c, 3)[r];
  if (target == static_cast<double>(c.attributes.integer("ignore_index"))) return row;
  const int64_t V = w.shape[0];
  TFC_CHECK(target >= 0 && target < static_cast<double>(V),
            "target " + std::to_string(target) + " is outside a vocabulary of " + std::to_string(V));
  row.counted = true;
  row.target = static_cast<int64_t>(target);
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t v = 0; v < V; ++v) {
    double logit = bias ? (*bias)[v] : 0;
    for (int64_t d = 0; d < hidden.width(); ++d) logit += hidden.row(r)[d] * w.row(v)[d];
    row.log_p.push_back(logit);
    greatest = std::fmax(greatest, logit);
  }
  for (const double logit : row.log_p) sum += std::exp(logit - greatest);
  const double log_sum = greatest + std::log(sum);
  for (double& value : row.log_p) value -= log_sum;
  return row;
}

/// (1-e) * nll + e/V * sum_v(-log p_v)
double row_loss(const LossRow& row, double smoothing) {
  double sum = 0;
  if (smoothing != 0)
    for (const double log_p : row.log_p) sum -= log_p;
  return (1 - smoothing) * -row.log_p[static_cast<size_t>(row.target)] +
         smoothing / static_cast<double>(row.log_p.size()) * sum;
}

}  // namespace

// linear_cross_entropy (hidden, w, bias?, targets, mask?) {ignore_index, smoothing} -> sum f64[], count f64[]
void infer_LinearCrossEntropy(InferContext& c) {
  if (need_loss_operands(c)) c.results = {scalar_f64(), scalar_f64()};
}

void eval_LinearCrossEntropy(const EvalContext& c) {
  for (int64_t r = 0; r < need(c, 3).elements(); ++r) {
    const LossRow row = loss_row(c, r);
    if (!row.counted) continue;
    c.results[0][0] += row_loss(row, c.attributes.real("smoothing"));
    c.results[1][0] += 1;
  }
}

// The loss is where differentiation starts: its upstream is one. Loss and gradients come out of one
// operation, which takes the place of the loss; the train entry's input `mean` says whether of the sum or of
// the mean.
void gradient_LinearCrossEntropy(GradientContext& c) {
  const NodeId grad =
      c.add(OpKind::LinearCrossEntropyGrad,
            {c.operand(0), c.operand(1), c.operand(2), c.operand(3), optional_operand(c, 4), c.mean_flag()},
            c.node().attributes, "grad");
  c.replace_result(0, {grad, 0});
  c.replace_result(1, {grad, 1});
  for (uint32_t slot = 0; slot < 3; ++slot)
    if (c.operand(slot).valid() && c.wanted(slot)) c.give(slot, {grad, 2 + slot});
}

// linear_cross_entropy_grad (hidden, w, bias?, targets, mask?, mean f64[]) -> sum, count, dhidden, dw, dbias
void infer_LinearCrossEntropyGrad(InferContext& c) {
  if (!need_loss_operands(c) || !need_type(c, 5, "mean", scalar_f64())) return;
  const Type& w = *c.operands[1];
  c.results = {scalar_f64(), scalar_f64(), *c.operands[0], w, {c.real, {w.shape[0]}}};
}

// With p = softmax(hidden W^T + bias), of each counted row, times 1/count for the mean:
//   dlogit_v = p_v - (1-e) [v = target] - e/V
//   dhidden = dlogit W      dw = dlogit^T hidden      dbias = sum of dlogit
void eval_LinearCrossEntropyGrad(const EvalContext& c) {
  const Tensor& hidden = need(c, 0);
  const Tensor& w = need(c, 1);
  const double smoothing = c.attributes.real("smoothing");
  eval_LinearCrossEntropy(c);
  const double count = c.results[1][0];
  const double weight = need(c, 5)[0] != 0 ? 1 / count : 1;
  for (int64_t r = 0; r < need(c, 3).elements(); ++r) {
    const LossRow row = loss_row(c, r);
    if (!row.counted) continue;
    for (int64_t v = 0; v < w.shape[0]; ++v) {
      const double wished =
          (v == row.target ? 1 - smoothing : 0) + smoothing / static_cast<double>(w.shape[0]);
      const double dlogit = weight * (std::exp(row.log_p[static_cast<size_t>(v)]) - wished);
      for (int64_t d = 0; d < hidden.width(); ++d) {
        c.results[2].row(r)[d] += dlogit * w.row(v)[d];
        c.results[3].row(v)[d] += dlogit * hidden.row(r)[d];
      }
      c.results[4][v] += dlogit;
    }
  }
}

// linear_logprob (hidden, w, bias?, targets, mask?) {ignore_index} -> f[R]
void infer_LinearLogprob(InferContext& c) {
  if (need_loss_operands(c)) c.results = {without_last(*c.operands[0])};
}

void eval_LinearLogprob(const EvalContext& c) {
  for (int64_t r = 0; r < need(c, 3).elements(); ++r) {
    const LossRow row = loss_row(c, r);
    if (row.counted) c.results[0][r] = row.log_p[static_cast<size_t>(row.target)];
  }
}

}  // namespace tfc::ir
