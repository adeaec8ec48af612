// Element by element, and side by side.
#include <cmath>
#include <numbers>

#include "ir/ops/rules.h"

namespace tfc::ir {

// ---- add, multiply, scale ----

static bool infer_equal_shapes(InferContext& c) {
  if (!need(c, 0, "a", c.real, 0) || !need_type(c, 1, "b", *c.operands[0])) return false;
  c.results = {*c.operands[0]};
  return true;
}

// add (a, b): equal shapes
void infer_Add(InferContext& c) { infer_equal_shapes(c); }

void eval_Add(const EvalContext& c) {
  for (int64_t i = 0; i < c.results[0].elements(); ++i) c.results[0][i] = need(c, 0)[i] + need(c, 1)[i];
}

// da = db = dy
void gradient_Add(GradientContext& c) {
  if (!c.upstream().valid()) return;
  for (uint32_t slot = 0; slot < 2; ++slot)
    if (c.wanted(slot)) c.give(slot, c.upstream());
}

// multiply (a, b): equal shapes
void infer_Multiply(InferContext& c) { infer_equal_shapes(c); }

void eval_Multiply(const EvalContext& c) {
  for (int64_t i = 0; i < c.results[0].elements(); ++i) c.results[0][i] = need(c, 0)[i] * need(c, 1)[i];
}

// da = dy * b      db = dy * a
void gradient_Multiply(GradientContext& c) {
  if (!c.upstream().valid()) return;
  if (c.wanted(0)) c.give(0, {c.add(OpKind::Multiply, {c.upstream(), c.operand(1)}, {}, "da")});
  if (c.wanted(1)) c.give(1, {c.add(OpKind::Multiply, {c.upstream(), c.operand(0)}, {}, "db")});
}

// scale (x) {factor}
void infer_Scale(InferContext& c) {
  if (need(c, 0, "x", c.real, 0)) c.results = {*c.operands[0]};
}

void eval_Scale(const EvalContext& c) {
  const double factor = c.attributes.real("factor");
  for (int64_t i = 0; i < c.results[0].elements(); ++i) c.results[0][i] = factor * need(c, 0)[i];
}

// dx = factor * dy
void gradient_Scale(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::Scale, {c.upstream()}, c.node().attributes, "dx")});
}

// ---- activation ----

static bool known_activation(InferContext& c) {
  const std::string& kind = c.attributes.text("kind");
  if (kind == "relu" || kind == "gelu" || kind == "gelu_tanh" || kind == "silu") return true;
  return fail(c, "activation '" + kind + "' is unknown, expected relu, gelu, gelu_tanh or silu");
}

// activation (x) {kind = relu | gelu | gelu_tanh | silu}
void infer_Activation(InferContext& c) {
  if (need(c, 0, "x", c.real, 0) && known_activation(c)) c.results = {*c.operands[0]};
}

static double normal_cdf(double x) { return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }
static double normal_pdf(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }
static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The tanh form of GELU (Hendrycks, Gimpel 2016, arXiv:1606.08415): tanh of u(x).
constexpr double kGeluCubic = 0.044715;
static double gelu_u(double x) { return std::sqrt(2 / std::numbers::pi) * (x + kGeluCubic * x * x * x); }
static double gelu_du(double x) { return std::sqrt(2 / std::numbers::pi) * (1 + 3 * kGeluCubic * x * x); }

static double activate(const std::string& kind, double x) {
  if (kind == "relu") return x < 0 ? 0 : x;  // keeps NaN
  if (kind == "gelu") return x * normal_cdf(x);
  if (kind == "gelu_tanh") return 0.5 * x * (1 + std::tanh(gelu_u(x)));
  return x * sigmoid(x);
}

static double activation_slope(const std::string& kind, double x) {
  if (kind == "relu") return x <= 0 ? 0 : 1;
  if (kind == "gelu") return normal_cdf(x) + x * normal_pdf(x);
  if (kind == "gelu_tanh") {
    const double t = std::tanh(gelu_u(x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_du(x);
  }
  const double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

void eval_Activation(const EvalContext& c) {
  const std::string& kind = c.attributes.text("kind");
  for (int64_t i = 0; i < c.results[0].elements(); ++i) c.results[0][i] = activate(kind, need(c, 0)[i]);
}

// dx = dy * act'(x)
void gradient_Activation(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::ActivationGrad, {c.upstream(), c.operand(0)}, c.node().attributes, "dx")});
}

// activation_grad (dy, x) {kind}
void infer_ActivationGrad(InferContext& c) {
  if (known_activation(c)) infer_equal_shapes(c);
}

void eval_ActivationGrad(const EvalContext& c) {
  const std::string& kind = c.attributes.text("kind");
  for (int64_t i = 0; i < c.results[0].elements(); ++i)
    c.results[0][i] = need(c, 0)[i] * activation_slope(kind, need(c, 1)[i]);
}

// ---- residual ----

// scale_columns (x f[R,D], gamma f[D]) -> as x
void infer_ScaleColumns(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1) || !need_type(c, 1, "gamma", {c.real, {c.operands[0]->width()}})) return;
  c.results = {*c.operands[0]};
}

void eval_ScaleColumns(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t d = 0; d < x.width(); ++d) c.results[0].row(r)[d] = x.row(r)[d] * need(c, 1)[d];
}

void gradient_ScaleColumns(GradientContext& c) {
  if (!c.upstream().valid() || !(c.wanted(0) || c.wanted(1))) return;
  const NodeId grad =
      c.add(OpKind::ScaleColumnsGrad, {c.upstream(), c.operand(0), c.operand(1)}, {}, "dx");
  for (uint32_t slot : {0u, 1u})
    if (c.wanted(slot)) c.give(slot, {grad, slot});
}

// scale_columns_grad (dy f[R,D], x f[R,D], gamma f[D]) -> dx = dy * gamma, dgamma = sum of dy * x over rows
void infer_ScaleColumnsGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 1)) return;
  const Type& dy = *c.operands[0];
  const Type gamma{c.real, {dy.width()}};
  if (need_type(c, 1, "x", dy) && need_type(c, 2, "gamma", gamma)) c.results = {dy, gamma};
}

void eval_ScaleColumnsGrad(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t d = 0; d < dy.width(); ++d) {
      c.results[0].row(r)[d] = dy.row(r)[d] * need(c, 2)[d];
      c.results[1][d] += dy.row(r)[d] * need(c, 1).row(r)[d];
    }
}

// residual (x, y...) {scale}: x + scale * (sum of the others, left to right)
void infer_Residual(InferContext& c) {
  if (!need(c, 0, "x", c.real, 0)) return;
  for (uint32_t slot = 1; slot < c.operands.size(); ++slot)
    if (!need_type(c, slot, "y", *c.operands[0])) return;
  c.results = {*c.operands[0]};
}

void eval_Residual(const EvalContext& c) {
  const double scale = c.attributes.real("scale");
  for (int64_t i = 0; i < c.results[0].elements(); ++i) {
    double sum = need(c, 1)[i];
    for (size_t slot = 2; slot < c.operands.size(); ++slot) sum += need(c, slot)[i];
    c.results[0][i] = need(c, 0)[i] + scale * sum;
  }
}

// dx = dout      dy = scale * dout, for each of the others
void gradient_Residual(GradientContext& c) {
  const Value upstream = c.upstream();
  if (!upstream.valid()) return;
  const double scale = c.node().attributes.real("scale");
  if (c.wanted(0)) c.give(0, upstream);
  Value scaled = scale == 1 ? upstream : Value{};
  for (uint32_t slot = 1; slot < c.operand_count(); ++slot) {
    if (!c.wanted(slot)) continue;
    if (!scaled.valid()) scaled = {c.add(OpKind::Scale, {upstream}, {{"factor", scale}}, "scaled")};
    c.give(slot, scaled);
  }
}

// ---- split, concat ----

// split (x f[R,N]) {widths} -> f[R,n0], f[R,n1], ...: consecutive columns
void infer_Split(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1)) return;
  const Type& x = *c.operands[0];
  Dim sum;
  for (const int64_t width : c.attributes.list("widths")) {
    if (width <= 0) {
      fail(c, "a width of split is " + std::to_string(width) + ", expected at least 1");
      return;
    }
    c.results.push_back(with_last(x, width));
    sum = sum + Dim(width);
  }
  if (sum != x.width() || c.results.empty())
    fail(c, "the widths of split add up to " + sum.text() + ", expected " + x.width().text() +
                ", the width of x");
}

void eval_Split(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  int64_t first = 0;
  for (Tensor& part : c.results) {
    for (int64_t r = 0; r < x.rows(); ++r)
      for (int64_t n = 0; n < part.width(); ++n) part.row(r)[n] = x.row(r)[first + n];
    first += part.width();
  }
}

// dx = the upstreams side by side, zeros where nothing flows
void gradient_Split(GradientContext& c) {
  if (!c.wanted(0)) return;
  const std::vector<Type> types = c.node().results;
  std::vector<Value> parts;
  bool any = false;
  for (uint32_t i = 0; i < types.size(); ++i) {
    parts.push_back(c.upstream(i));
    any = any || parts.back().valid();
  }
  if (!any) return;
  for (uint32_t i = 0; i < types.size(); ++i)
    if (!parts[i].valid()) parts[i] = c.zeros(types[i]);
  c.give(0, {c.add(OpKind::Concat, parts, {}, "dx")});
}

// concat (x0 f[R,n0], x1, ...) -> f[R,sum]: columns side by side
void infer_Concat(InferContext& c) {
  if (!need(c, 0, "x0", c.real, 1)) return;
  Dim sum;
  for (uint32_t slot = 0; slot < c.operands.size(); ++slot) {
    if (!need(c, slot, "x", c.real, 1)) return;
    if (!need_type(c, slot, "x", with_last(*c.operands[0], c.operands[slot]->width()))) return;
    sum = sum + c.operands[slot]->width();
  }
  c.results = {with_last(*c.operands[0], sum)};
}

void eval_Concat(const EvalContext& c) {
  Tensor& y = c.results[0];
  int64_t first = 0;
  for (const Tensor* part : c.operands) {
    for (int64_t r = 0; r < y.rows(); ++r)
      for (int64_t n = 0; n < part->width(); ++n) y.row(r)[first + n] = part->row(r)[n];
    first += part->width();
  }
}

// The upstream's columns, each part to its operand
void gradient_Concat(GradientContext& c) {
  if (!c.upstream().valid()) return;
  std::vector<int64_t> widths;
  for (uint32_t slot = 0; slot < c.operand_count(); ++slot) {
    const Dim width = type_of(c, c.operand(slot)).width();
    TFC_CHECK(width.constant().has_value(), "a part of %" + c.node().name + " has the width " + width.text());
    widths.push_back(*width.constant());
  }
  const NodeId parts = c.add(OpKind::Split, {c.upstream()}, {{"widths", widths}}, "parts");
  for (uint32_t slot = 0; slot < c.operand_count(); ++slot)
    if (c.wanted(slot)) c.give(slot, {parts, slot});
}

}  // namespace tfc::ir
