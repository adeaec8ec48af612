// Mixtures of experts: every token goes through the few feed-forwards that its router chooses (Shazeer et al.
// 2017). Rows by expert lie as ir/ops.def says: one expert's after the other's.
#include <algorithm>
#include <cmath>

#include "ir/ops/rules.h"

namespace tfc::ir {

namespace {

constexpr int64_t kNone = -1;  // expert or position of what is not routed

Type choices_of(const Type& tokens, const Dim& top_k, DType dtype) {
  return with_dtype(with_last(tokens, top_k), dtype);
}

/// f[R,W] -> f[R,J,W]
Type rows_by_expert(const Type& tokens, const Dim& top_k) {
  Type type = tokens;
  type.shape.insert(type.shape.end() - 1, top_k);
  return type;
}

/// f[R,J,W] -> f[R,W]
Type tokens_of(const Type& rows) {
  Type type = rows;
  type.shape.erase(type.shape.end() - 2);
  return type;
}

Dim top_k_of(const Type& rows) { return rows.shape[rows.shape.size() - 2]; }

bool need_starts(InferContext& c, uint32_t slot) { return need(c, slot, "starts", DType::I32, 1, 1); }

/// The experts of a token, the greatest logit first.
std::vector<int64_t> chosen(const double* logits, int64_t X, int64_t top_k) {
  std::vector<int64_t> list;
  while (static_cast<int64_t>(list.size()) < top_k) {
    int64_t best = kNone;
    for (int64_t e = 0; e < X; ++e) {
      if (std::find(list.begin(), list.end(), e) != list.end()) continue;
      if (best == kNone || logits[e] > logits[best]) best = e;
    }
    list.push_back(best);
  }
  return list;
}

/// Choices that an expert takes: infinitely many without a capacity.
double most_choices(double capacity, int64_t tokens, int64_t top_k, int64_t X) {
  if (capacity == 0) return INFINITY;
  return std::ceil(capacity * static_cast<double>(tokens) * static_cast<double>(top_k) /
                   static_cast<double>(X));
}

void place_choices(const Tensor& experts, double most, Tensor& positions, Tensor& starts) {
  const int64_t X = starts.elements() - 1;
  std::vector<double> taken(static_cast<size_t>(X));
  for (int64_t i = 0; i < experts.elements(); ++i) {
    positions[i] = kNone;
    if (experts[i] == kNone) continue;
    double& count = taken[static_cast<size_t>(experts[i])];
    if (count < most) positions[i] = count++;
  }
  for (int64_t e = 0; e < X; ++e) starts[e + 1] = starts[e] + taken[static_cast<size_t>(e)];
  for (int64_t i = 0; i < experts.elements(); ++i)
    if (positions[i] != kNone) positions[i] += starts[static_cast<int64_t>(experts[i])];
}

}  // namespace

// ---- route ----

// route (logits f[R,X], mask? u8[R]) {top_k, renormalize, capacity} -> weights, experts, positions, starts
void infer_Route(InferContext& c) {
  if (!need(c, 0, "logits", c.real, 2) || !need_positive(c, "top_k")) return;
  const Type& logits = *c.operands[0];
  const auto X = logits.width().constant();
  const int64_t top_k = c.attributes.integer("top_k");
  if (!X || top_k > *X) {
    c.error = "attribute top_k is " + std::to_string(top_k) + ", logits are " + logits.text();
    return;
  }
  if (!(c.attributes.real("capacity") >= 0)) {
    c.error = "attribute capacity is negative";
    return;
  }
  if (!allow_type(c, 1, "mask", with_dtype(without_last(logits), DType::U8))) return;
  const Type choices = choices_of(logits, top_k, DType::I32);
  c.results = {with_dtype(choices, c.real), choices, choices, {DType::I32, {*X + 1}}};
}

void eval_Route(const EvalContext& c) {
  const Tensor& logits = need(c, 0);
  const int64_t X = logits.width(), top_k = c.attributes.integer("top_k");
  Tensor &weights = c.results[0], &experts = c.results[1];
  int64_t tokens = 0;
  for (int64_t r = 0; r < logits.rows(); ++r) {
    std::fill_n(experts.row(r), top_k, kNone);
    if (!is_real(operand(c, 1), r)) continue;
    ++tokens;
    const std::vector<double> p = softmax(logits.row(r), X);
    double sum = c.attributes.flag("renormalize") ? 0 : 1;
    const std::vector<int64_t> list = chosen(logits.row(r), X, top_k);
    for (size_t j = 0; j < list.size(); ++j) {
      experts.row(r)[j] = static_cast<double>(list[j]);
      weights.row(r)[j] = p[static_cast<size_t>(list[j])];
      if (c.attributes.flag("renormalize")) sum += weights.row(r)[j];
    }
    for (int64_t j = 0; j < top_k; ++j) weights.row(r)[j] /= sum;
  }
  place_choices(experts, most_choices(c.attributes.real("capacity"), tokens, top_k, X), c.results[2],
                c.results[3]);
}

// What is chosen is constant between ties; the weights are a softmax.
void gradient_Route(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::RouteGrad, {c.upstream(), c.result(0), c.result(1), c.operand(0)},
                   {{"renormalize", c.node().attributes.flag("renormalize")}}, "dlogits")});
}

// route_grad (dweights f[R,J], weights, experts i32[R,J], logits f[R,X]) {renormalize} -> dlogits f[R,X]
void infer_RouteGrad(InferContext& c) {
  if (!need(c, 0, "dweights", c.real, 2) || !need(c, 3, "logits", c.real, 2)) return;
  const Type& dweights = *c.operands[0];
  if (!need_type(c, 1, "weights", dweights) ||
      !need_type(c, 2, "experts", with_dtype(dweights, DType::I32)) ||
      !need_type(c, 3, "logits", with_last(dweights, c.operands[3]->width()))) {
    return;
  }
  c.results = {*c.operands[3]};
}

// With w the weights, s = sum_j w_j dw_j, and p the softmax that w is part of (w itself where it is
// renormalised, 0 elsewhere):   dlogit_e = w_j dw_j where e is choice j, minus p_e s
void eval_RouteGrad(const EvalContext& c) {
  const Tensor &dw = need(c, 0), &w = need(c, 1), &experts = need(c, 2), &logits = need(c, 3);
  const bool renormalize = c.attributes.flag("renormalize");
  for (int64_t r = 0; r < logits.rows(); ++r) {
    if (experts.row(r)[0] == kNone) continue;
    double* dlogits = c.results[0].row(r);
    double s = 0;
    for (int64_t j = 0; j < dw.width(); ++j) s += w.row(r)[j] * dw.row(r)[j];
    if (!renormalize) {
      const std::vector<double> p = softmax(logits.row(r), logits.width());
      for (int64_t e = 0; e < logits.width(); ++e) dlogits[e] = -p[static_cast<size_t>(e)] * s;
    }
    for (int64_t j = 0; j < dw.width(); ++j)
      dlogits[static_cast<int64_t>(experts.row(r)[j])] +=
          w.row(r)[j] * (dw.row(r)[j] - (renormalize ? s : 0));
  }
}

// ---- dispatch and combine ----

// dispatch (x f[R,W], positions i32[R,J], starts i32[X+1]) -> f[R,J,W]
void infer_Dispatch(InferContext& c) {
  if (!need(c, 0, "x", c.real, 2) || !need(c, 1, "positions", DType::I32, 2) || !need_starts(c, 2)) return;
  const Type& x = *c.operands[0];
  const Dim top_k = c.operands[1]->width();
  if (need_type(c, 1, "positions", choices_of(x, top_k, DType::I32))) c.results = {rows_by_expert(x, top_k)};
}

void eval_Dispatch(const EvalContext& c) {
  const Tensor &x = need(c, 0), &positions = need(c, 1);
  for (int64_t i = 0; i < positions.elements(); ++i) {
    if (positions[i] == kNone) continue;
    const double* from = x.row(i / positions.width());
    std::copy(from, from + x.width(), c.results[0].row(static_cast<int64_t>(positions[i])));
  }
}

void gradient_Dispatch(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::Combine, {c.upstream(), c.operand(1), c.operand(2)}, {}, "dx")});
}

// combine (x f[R,J,W], positions i32[R,J], starts i32[X+1], weights? f[R,J]) -> f[R,W]
void infer_Combine(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3) || !need_starts(c, 2)) return;
  const Type tokens = tokens_of(*c.operands[0]);
  const Type choices = choices_of(tokens, top_k_of(*c.operands[0]), DType::I32);
  if (!need_type(c, 1, "positions", choices) || !allow_type(c, 3, "weights", with_dtype(choices, c.real)))
    return;
  c.results = {tokens};
}

void eval_Combine(const EvalContext& c) {
  const Tensor &x = need(c, 0), &positions = need(c, 1);
  const Tensor* weights = operand(c, 3);
  for (int64_t i = 0; i < positions.elements(); ++i) {
    if (positions[i] == kNone) continue;
    const double* from = x.row(static_cast<int64_t>(positions[i]));
    double* to = c.results[0].row(i / positions.width());
    for (int64_t d = 0; d < x.width(); ++d) to[d] += (weights ? (*weights)[i] : 1) * from[d];
  }
}

// A row by expert belongs to one choice:   dx = weight * dy of its token      dweight = dy . x
// Without weights it is a derivative itself, which nothing differentiates.
void gradient_Combine(GradientContext& c) {
  if (!c.upstream().valid() || !(c.wanted(0) || c.wanted(3))) return;
  const NodeId grad =
      c.add(OpKind::CombineGrad, {c.upstream(), c.operand(0), c.operand(1), c.operand(2), c.operand(3)}, {},
            "grad");
  if (c.wanted(0)) c.give(0, {grad, 0});
  if (c.wanted(3)) c.give(3, {grad, 1});
}

// combine_grad (dy f[R,W], x f[R,J,W], positions, starts, weights f[R,J]) -> dx f[R,J,W], dweights f[R,J]
void infer_CombineGrad(InferContext& c) {
  if (!need(c, 1, "x", c.real, 3) || !need_starts(c, 3)) return;
  const Type& x = *c.operands[1];
  const Type choices = choices_of(tokens_of(x), top_k_of(x), DType::I32);
  if (!need_type(c, 0, "dy", tokens_of(x)) || !need_type(c, 2, "positions", choices) ||
      !need_type(c, 4, "weights", with_dtype(choices, c.real))) {
    return;
  }
  c.results = {x, with_dtype(choices, c.real)};
}

void eval_CombineGrad(const EvalContext& c) {
  const Tensor &dy = need(c, 0), &x = need(c, 1), &positions = need(c, 2), &weights = need(c, 4);
  for (int64_t i = 0; i < positions.elements(); ++i) {
    if (positions[i] == kNone) continue;
    const double* upstream = dy.row(i / positions.width());
    const double* row = x.row(static_cast<int64_t>(positions[i]));
    double* dx = c.results[0].row(static_cast<int64_t>(positions[i]));
    for (int64_t d = 0; d < x.width(); ++d) {
      dx[d] = weights[i] * upstream[d];
      c.results[1][i] += upstream[d] * row[d];
    }
  }
}

}  // namespace tfc::ir
