// The loss that keeps experts equally busy (Fedus, Zoph, Shazeer 2021), and its place in the model's loss.
#include "ir/ops/rules.h"

namespace tfc::ir {

namespace {

bool is_routed(const Tensor& experts, int64_t r) { return experts.row(r)[0] >= 0; }

bool need_choices(InferContext& c, uint32_t logits, uint32_t experts) {
  if (!need(c, logits, "logits", c.real, 2) || !need(c, experts, "experts", DType::I32, 2)) return false;
  const Type& choices = *c.operands[experts];
  return need_type(c, experts, "experts",
                   with_dtype(with_last(*c.operands[logits], choices.width()), DType::I32));
}

}  // namespace

// balance (logits f[R,X], experts i32[R,J]) {factor} -> f64[], slopes f64[X]
void infer_Balance(InferContext& c) {
  if (need_choices(c, 0, 1)) c.results = {scalar_f64(), {DType::F64, {c.operands[0]->width()}}};
}

void eval_Balance(const EvalContext& c) {
  const Tensor &logits = need(c, 0), &experts = need(c, 1);
  Tensor& slopes = c.results[1];
  double tokens = 0;
  for (int64_t r = 0; r < experts.rows(); ++r) tokens += is_routed(experts, r);
  if (tokens == 0) return;
  const double share = c.attributes.real("factor") * static_cast<double>(logits.width()) / (tokens * tokens);
  for (int64_t i = 0; i < experts.elements(); ++i)
    if (experts[i] >= 0) slopes[static_cast<int64_t>(experts[i])] += share;
  for (int64_t r = 0; r < logits.rows(); ++r) {
    if (!is_routed(experts, r)) continue;
    const std::vector<double> p = softmax(logits.row(r), logits.width());
    for (int64_t e = 0; e < logits.width(); ++e) c.results[0][0] += slopes[e] * p[static_cast<size_t>(e)];
  }
}

// Who chose whom is constant between ties.
void gradient_Balance(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::BalanceGrad, {c.upstream(), c.result(1), c.operand(1), c.operand(0)}, {},
                   "dlogits")});
}

// balance_grad (dbalance f64[], slopes f64[X], experts i32[R,J], logits f[R,X]) -> dlogits f[R,X]
void infer_BalanceGrad(InferContext& c) {
  if (!need_type(c, 0, "dbalance", scalar_f64()) || !need_choices(c, 3, 2)) return;
  if (need_type(c, 1, "slopes", {DType::F64, {c.operands[3]->width()}})) c.results = {*c.operands[3]};
}

// dlogit_e = dbalance * p_e (slope_e - sum_i p_i slope_i)
void eval_BalanceGrad(const EvalContext& c) {
  const Tensor &slopes = need(c, 1), &logits = need(c, 3);
  for (int64_t r = 0; r < logits.rows(); ++r) {
    if (!is_routed(need(c, 2), r)) continue;
    const std::vector<double> p = softmax(logits.row(r), logits.width());
    double mean = 0;
    for (int64_t e = 0; e < logits.width(); ++e) mean += p[static_cast<size_t>(e)] * slopes[e];
    for (int64_t e = 0; e < logits.width(); ++e)
      c.results[0].row(r)[e] = need(c, 0)[0] * p[static_cast<size_t>(e)] * (slopes[e] - mean);
  }
}

// add_balance (sum f64[], count f64[], balance f64[]...) {share} -> f64[]
void infer_AddBalance(InferContext& c) {
  for (uint32_t slot = 0; slot < c.operands.size(); ++slot)
    if (!need_type(c, slot, "a loss", scalar_f64())) return;
  c.results = {scalar_f64()};
}

void eval_AddBalance(const EvalContext& c) {
  double balance = 0;
  for (uint32_t slot = 2; slot < c.operands.size(); ++slot) balance += need(c, slot)[0];
  c.results[0][0] = need(c, 0)[0] + need(c, 1)[0] * balance / c.attributes.real("share", 1.0);
}

// The loss behind `sum` knows its own upstream. What is differentiated is share times the sum of its rows' losses, or
// times their mean.
void gradient_AddBalance(GradientContext& c) {
  const NodeId scale = c.add(OpKind::BalanceScale, {c.operand(1), c.mean_flag()}, {}, "scale");
  for (uint32_t slot = 2; slot < c.operand_count(); ++slot) c.give(slot, {scale, 0});
}

// balance_scale (count f64[], mean f64[]) -> f64[]
void infer_BalanceScale(InferContext& c) {
  if (need_type(c, 0, "count", scalar_f64()) && need_type(c, 1, "mean", scalar_f64()))
    c.results = {scalar_f64()};
}

void eval_BalanceScale(const EvalContext& c) {
  const double count = need(c, 0)[0];
  c.results[0][0] = need(c, 1)[0] == 0 ? count : count > 0;
}

}  // namespace tfc::ir
