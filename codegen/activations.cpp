#include "codegen/activations.h"

#include "codegen/math.h"
#include "ir/check.h"

namespace tfc::codegen {

namespace {

constexpr double kRootTwoOverPi = 0.79788456080286536;     // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

/// (1 + tanh u) / 2 for GELU's cubic u (Hendrycks, Gimpel 2016): the logistic function of 2u, of an exponential that
/// does not overflow. Far out it is 1 or 0; holding x there keeps x^2 finite.
Val held(Val x) {
  KernelBuilder* k = x.builder();
  return k->max(k->same_type_constant(x, -40.0), k->min(k->same_type_constant(x, 40.0), x));
}
struct Logistic {
  Val value, slope;  // the slope s (1 - s) without the difference, of which little would be left near 1
};
Logistic gelu_share(Val x) {
  KernelBuilder* k = x.builder();
  const Val twice = x * k->fma(k->same_type_constant(x, 2 * kRootTwoOverPi * kGeluCubic), x * x,
                               k->same_type_constant(x, 2 * kRootTwoOverPi));
  const Val power = exp_nonpositive(-k->abs(twice)), larger = 1.0 / (1.0 + power);
  return {k->select(twice < 0.0, power * larger, larger), power * larger * larger};
}

Val slope(const std::string& kind, Val x) {
  if (kind == "gelu") {
    const Normal n = normal(x);
    return fma(x, n.density, n.cdf);
  }
  if (kind == "gelu_tanh") {
    const Val h = held(x), inner = 2 * kRootTwoOverPi * (1.0 + 3 * kGeluCubic * (h * h));
    const Logistic share = gelu_share(h);
    return fma(share.slope, h * inner, share.value);
  }
  TFC_CHECK(kind == "silu", "activation '" + kind + "' has no derivative here");
  const Val s = sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

}  // namespace

Val activate(const std::string& kind, Val x) {
  KernelBuilder* k = x.builder();
  if (kind == "relu") return k->select(x <= 0.0, k->same_type_constant(x, 0.0), x);
  if (kind == "gelu") return x * normal(x).cdf;
  if (kind == "gelu_tanh") return x * gelu_share(held(x)).value;
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
