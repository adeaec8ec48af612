#include "codegen/activations.h"

#include "codegen/math.h"
#include "ir/check.h"

namespace tfc::codegen {

namespace {

constexpr double kRootHalf = 0.70710678118654752;          // 1 / sqrt 2
constexpr double kRootTwoOverPi = 0.79788456080286536;     // sqrt(2 / pi)
constexpr double kInverseRootTwoPi = 0.39894228040143268;  // 1 / sqrt(2 pi)
constexpr double kGeluCubic = 0.044715;

/// The normal distribution up to x.
Val normal_cdf(Val x) { return 0.5 + 0.5 * erf(x * kRootHalf); }
Val normal_density(Val x) { return kInverseRootTwoPi * exp(-0.5 * (x * x)); }

/// tanh of GELU's cubic (Hendrycks, Gimpel 2016). Far out it is 1 or -1; holding x there keeps x^2 finite.
Val held(Val x) {
  KernelBuilder* k = x.builder();
  return k->max(k->same_type_constant(x, -40.0), k->min(k->same_type_constant(x, 40.0), x));
}
Val gelu_turn(Val x) { return tanh(kRootTwoOverPi * (x + kGeluCubic * (x * x * x))); }

Val slope(const std::string& kind, Val x) {
  if (kind == "gelu") return fma(x, normal_density(x), normal_cdf(x));
  if (kind == "gelu_tanh") {
    const Val h = held(x), t = gelu_turn(h), inner = kRootTwoOverPi * (1.0 + 3 * kGeluCubic * (h * h));
    return 0.5 * (1.0 + t) + 0.5 * h * (1.0 - t * t) * inner;
  }
  TFC_CHECK(kind == "silu", "activation '" + kind + "' has no derivative here");
  const Val s = sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

}  // namespace

Val activate(const std::string& kind, Val x) {
  KernelBuilder* k = x.builder();
  if (kind == "relu") return k->select(x <= 0.0, k->same_type_constant(x, 0.0), x);
  if (kind == "gelu") return x * normal_cdf(x);
  if (kind == "gelu_tanh") return 0.5 * x * (1.0 + gelu_turn(held(x)));
  TFC_CHECK(kind == "silu", "activation '" + kind + "' is unknown");
  return x * sigmoid(x);
}

Val activation_gradient(const std::string& kind, Val dy, Val x) {
  KernelBuilder* k = x.builder();
  if (kind == "relu") {
    const Val passed = k->select(x != x, x, dy);
    return k->select(x <= 0.0, k->same_type_constant(x, 0.0), passed);
  }
  return dy * slope(kind, x);
}

}  // namespace tfc::codegen
