// The optimizer's step, over the whole block of parameters.
#include <cmath>

#include "ir/ops/rules.h"

namespace tfc::ir {

// sum_squares (g f[N]) -> f64[]
void infer_SumSquares(InferContext& c) {
  if (need(c, 0, "g", c.real, 1, 1)) c.results = {scalar_f64()};
}

void eval_SumSquares(const EvalContext& c) {
  for (const double g : need(c, 0).data) c.results[0][0] += g * g;
}

// clip_scale (sum_squares f64[], count f64[], clip f64[]) -> scale f64[], norm f64[]
void infer_ClipScale(InferContext& c) {
  if (need_type(c, 0, "sum_squares", scalar_f64()) && need_type(c, 1, "count", scalar_f64()) &&
      need_type(c, 2, "clip", scalar_f64()))
    c.results = {scalar_f64(), scalar_f64()};
}

// As torch.nn.utils.clip_grad_norm_, of gradients still to be divided by count.
void eval_ClipScale(const EvalContext& c) {
  const double count = need(c, 1)[0], clip = need(c, 2)[0];
  const double norm = std::sqrt(need(c, 0)[0]) / count;
  double scale = 1 / count;
  if (clip > 0) {
    const double shrink = clip / (norm + 1e-6);
    if (shrink < 1) scale *= shrink;
  }
  c.results[0][0] = scale;
  c.results[1][0] = norm;
}

// adamw (p f[N], g, m, v, scale f64[], hyper f64[8], lr_scale f64[P], decay f64[P]) -> p', m', v', g' = 0
void infer_AdamW(InferContext& c) {
  if (!need(c, 0, "p", c.real, 1, 1)) return;
  const Type& p = *c.operands[0];
  if (!need_type(c, 1, "g", p) || !need_type(c, 2, "m", p) || !need_type(c, 3, "v", p) ||
      !need_type(c, 4, "scale", scalar_f64()) || !need_type(c, 5, "hyper", {DType::F64, {8}}) ||
      !need(c, 6, "lr_scale", DType::F64, 1, 1) || !need_type(c, 7, "decay", *c.operands[6]))
    return;
  c.results = {p, p, p, p};
}

// Decoupled weight decay (Loshchilov, Hutter 2019, arXiv:1711.05101), as torch.optim.AdamW computes it.
// Padding between parameters is left alone.
void eval_AdamW(const EvalContext& c) {
  const Tensor& hyper = need(c, 5);
  const double lr = hyper[0], beta1 = hyper[1], beta2 = hyper[2], eps = hyper[3], weight_decay = hyper[4];
  const double step = hyper[5], scale = need(c, 4)[0];
  const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  Tensor& p = c.results[0];
  Tensor& m = c.results[1];
  Tensor& v = c.results[2];
  p.data = need(c, 0).data;
  m.data = need(c, 2).data;
  v.data = need(c, 3).data;
  TFC_CHECK(c.module != nullptr && static_cast<int64_t>(c.module->parameters.size()) == need(c, 6).elements(),
            "adamw needs one lr_scale for each parameter");
  for (size_t i = 0; i < c.module->parameters.size(); ++i) {
    const Parameter& parameter = c.module->parameters[i];
    if (parameter.frozen) continue;
    const double rate = lr * need(c, 6).data[i], shrink = 1 - rate * weight_decay * need(c, 7).data[i];
    for (int64_t e = parameter.offset; e < parameter.offset + parameter.elements(); ++e) {
      const double g = scale * need(c, 1)[e];
      m[e] = beta1 * m[e] + (1 - beta1) * g;
      v[e] = beta2 * v[e] + (1 - beta2) * g * g;
      p[e] = p[e] * shrink - rate / correction1 * m[e] / (std::sqrt(v[e]) / std::sqrt(correction2) + eps);
    }
  }
}

}  // namespace tfc::ir
