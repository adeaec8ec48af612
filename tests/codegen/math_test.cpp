// Elementary functions against long double libm, over every exponent, and at the places where they have to be
// exact.
#include "codegen/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "jit.h"

namespace tfc::test {
namespace {

using codegen::KernelBuilder;
using codegen::Lane;
using codegen::Val;
using ir::DType;

using Function = Val (*)(Val);
using Reference = std::function<long double(long double)>;

/// y = f(x) for all elements, in vectors of 16 or one by one.
JitKernel map_kernel(Function f, DType real, const std::string& level, bool scalar = false) {
  return JitKernel(
      [f, scalar](KernelBuilder& k) {
        k.for_tasks([&](Val) {
          if (scalar) {
            k.loop("x", k.integer(2), [&](Val i) { k.store(k.pointer(1), i, f(k.load(k.pointer(0), i))); });
          } else {
            k.vector_loop("x", k.integer(2),
                          [&](Lane i) { k.store(k.pointer(1), i, f(k.load(k.pointer(0), i))); });
          }
        });
        return k.finish();
      },
      real, target_of(level));
}

template <class T>
constexpr DType kReal = sizeof(T) == 4 ? DType::F32 : DType::F64;

template <class T>
std::vector<T> run(Function f, const std::string& level, const std::vector<T>& x, bool scalar = false) {
  std::vector<T> in = x, out(x.size());
  map_kernel(f, kReal<T>, level, scalar).run({in, out, x.size()}, 1, 0);
  return out;
}

/// `count` random significands at every exponent from 2^low to 2^high, with both signs unless told otherwise.
template <class T>
std::vector<T> every_exponent(int low, int high, int count, bool negative = true) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> significand(1, 2);
  std::vector<T> x;
  for (int e = low; e <= high; ++e) {
    for (int i = 0; i < count; ++i) {
      x.push_back(static_cast<T>(std::ldexp(significand(random), e)));
      if (negative && i % 2) x.back() = -x.back();
    }
  }
  return x;
}

/// Error in units of the last place of the exact result, where that is a normal number.
template <class T>
double ulps(T found, long double exact) {
  const T rounded = static_cast<T>(exact);
  int exponent;
  std::frexp(rounded, &exponent);
  const long double unit = std::ldexp(
      1.0L, std::max(exponent, std::numeric_limits<T>::min_exponent) - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) / unit);
}

template <class T>
void expect_within(const char* name, Function f, const Reference& exact, const std::vector<T>& x,
                   double bound) {
  for (const std::string& level : runnable_levels()) {
    const std::vector<T> y = run(f, level, x);
    double worst = 0;
    T at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double value = exact(static_cast<long double>(x[i]));
      if (std::isinf(static_cast<T>(value))) {
        EXPECT_EQ(y[i], static_cast<T>(value)) << name << "(" << x[i] << ") at " << level;
      } else if (std::fabs(value) < static_cast<long double>(std::numeric_limits<T>::min())) {
        EXPECT_LE(std::fabs(static_cast<long double>(y[i]) - value),
                  static_cast<long double>(std::numeric_limits<T>::min()))
            << name << "(" << x[i] << ") at " << level;
      } else if (const double error = ulps(y[i], value); !(error <= worst)) {
        worst = error;
        at = x[i];
      }
    }
    EXPECT_LE(worst, bound) << name << " at " << at << ", " << level;
  }
}

constexpr int kPoints = 3000;

TEST(Math, ExpIsCloseAtEveryExponent) {
  expect_within<float>(
      "exp", codegen::exp, [](long double x) { return std::exp(x); }, every_exponent<float>(-40, 6, kPoints),
      1.5);
  expect_within<double>(
      "exp", codegen::exp, [](long double x) { return std::exp(x); }, every_exponent<double>(-70, 9, kPoints),
      1.5);
}

TEST(Math, ExpOverflowsToInfinityAndUnderflowsToZero) {
  expect_within<float>(
      "exp", codegen::exp, [](long double x) { return std::exp(x); }, every_exponent<float>(6, 127, 100),
      1.5);
  expect_within<double>(
      "exp", codegen::exp, [](long double x) { return std::exp(x); }, every_exponent<double>(9, 1023, 100),
      1.5);
  const std::vector<float> y =
      run<float>(codegen::exp, "x86-64-v2", {88.72283f, 88.72284f, -87.33654f, -87.34f, -1e30f});
  EXPECT_TRUE(std::isfinite(y[0]));
  EXPECT_TRUE(std::isinf(y[1]));
  EXPECT_GT(y[2], 0);
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[4], 0);
}

TEST(Math, ExpOfNonPositiveHasTheBitsOfExp) {
  std::vector<float> x = every_exponent<float>(-40, 40, 500, false);
  for (float& value : x) value = -value;
  x.push_back(0.0f);
  x.push_back(-std::numeric_limits<float>::infinity());
  for (const std::string& level : runnable_levels()) {
    EXPECT_EQ(run(codegen::exp, level, x), run(codegen::exp_nonpositive, level, x)) << level;
  }
}

TEST(Math, LogIsCloseAtEveryExponent) {
  auto exact = [](long double x) { return std::log(x); };
  expect_within<float>("log", codegen::log, exact, every_exponent<float>(-126, 127, 2000, false), 1.5);
  expect_within<double>("log", codegen::log, exact, every_exponent<double>(-1022, 1023, 500, false), 1.5);
  std::vector<float> near_one;
  for (int i = -3000; i <= 3000; ++i) near_one.push_back(1 + static_cast<float>(i) * 0x1p-20f);
  expect_within<float>("log", codegen::log, exact, near_one, 1.5);
  std::vector<double> near(near_one.begin(), near_one.end());
  expect_within<double>("log", codegen::log, exact, near, 1.5);
}

TEST(Math, TanhIsCloseAtEveryExponent) {
  auto exact = [](long double x) { return std::tanh(x); };
  expect_within<float>("tanh", codegen::tanh, exact, every_exponent<float>(-60, 127, 2000), 2.5);
  expect_within<double>("tanh", codegen::tanh, exact, every_exponent<double>(-70, 20, kPoints), 2.5);
}

Val normal_cdf(Val x) { return codegen::normal(x).cdf; }
Val normal_density(Val x) { return codegen::normal(x).density; }

template <class T>
void expect_normal(const std::vector<T>& all, long double absolute) {
  const auto cdf = [](long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; };
  const auto density = [](long double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L)); };
  for (const std::string& level : runnable_levels()) {
    const std::vector<T> share = run(normal_cdf, level, all), height = run(normal_density, level, all);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto x = static_cast<long double>(all[i]);
      const auto check = [&](T found, long double exact, const char* what) {
        EXPECT_LE(std::fabs(static_cast<long double>(found) - exact), absolute) << what << " at " << x << ", " << level;
        if (exact < static_cast<long double>(4 * std::numeric_limits<T>::min())) return;
        EXPECT_LE(ulps(found, exact), 6 + x * x) << what << " at " << x << ", " << level;
      };
      check(share[i], cdf(x), "cdf");
      check(height[i], density(x), "density");
    }
  }
}

TEST(Math, TheNormalDistributionIsCloseAtEveryExponent) {
  expect_normal<float>(every_exponent<float>(-60, 127, 2000), 2e-7L);
  expect_normal<double>(every_exponent<double>(-70, 20, 2000), 4e-16L);
}

TEST(Math, SigmoidIsCloseAtEveryExponent) {
  auto exact = [](long double x) { return 1 / (1 + std::exp(-x)); };
  expect_within<float>("sigmoid", codegen::sigmoid, exact, every_exponent<float>(-60, 5, 2000), 3);
  expect_within<double>("sigmoid", codegen::sigmoid, exact, every_exponent<double>(-70, 8, 2000), 3);
}

TEST(Math, RsqrtIsCloseAtEveryExponent) {
  auto exact = [](long double x) { return 1 / std::sqrt(x); };
  expect_within<float>("rsqrt", codegen::rsqrt, exact, every_exponent<float>(-126, 127, 1000, false), 1.5);
  expect_within<double>("rsqrt", codegen::rsqrt, exact, every_exponent<double>(-1022, 1023, 100, false), 1.5);
}

Val sine(Val x) { return codegen::sin_cos(x).sin; }
Val cosine(Val x) { return codegen::sin_cos(x).cos; }

TEST(Math, SineAndCosineOfAnglesUpToTwoToThe31) {
  std::vector<double> x = every_exponent<double>(-60, 30, kPoints);
  for (int i = 0; i < 20000; ++i) x.push_back(i * M_PI_2);  // where one of them is nearly zero
  for (const std::string& level : runnable_levels()) {
    const std::vector<double> s = run(sine, level, x), c = run(cosine, level, x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(s[i], static_cast<double>(std::sin(static_cast<long double>(x[i]))), 3e-16)
          << x[i] << " " << level;
      ASSERT_NEAR(c[i], static_cast<double>(std::cos(static_cast<long double>(x[i]))), 3e-16)
          << x[i] << " " << level;
    }
  }
  const std::vector<float> f = {0.5f, -3.0f, 1000.25f};
  const std::vector<float> s = run<float>(sine, "x86-64-v2", f);
  for (size_t i = 0; i < f.size(); ++i)
    EXPECT_EQ(s[i], static_cast<float>(std::sin(static_cast<double>(f[i]))));
}

template <class T>
void expect_special(Function f, const std::vector<std::pair<double, double>>& pairs) {
  for (const std::string& level : runnable_levels()) {
    std::vector<T> x;
    for (auto [in, out] : pairs) x.push_back(static_cast<T>(in));
    const std::vector<T> y = run(f, level, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const T wanted = static_cast<T>(pairs[i].second);
      EXPECT_EQ(std::isnan(y[i]), std::isnan(wanted)) << x[i] << " gave " << y[i] << " at " << level;
      if (!std::isnan(wanted)) {
        EXPECT_EQ(y[i], wanted) << x[i] << " at " << level;
      }
    }
  }
}

TEST(Math, InfinitiesZerosAndNaNAreExact) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<Function, std::vector<std::pair<double, double>>>> cases = {
      {codegen::exp, {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, 0}, {nan, nan}, {-nan, nan}}},
      {codegen::exp_nonpositive, {{0, 1}, {-inf, 0}, {nan, nan}}},
      {codegen::log, {{1, 0}, {0, -inf}, {-0.0, -inf}, {inf, inf}, {-1, nan}, {-inf, nan}, {nan, nan}}},
      {codegen::tanh, {{0, 0}, {inf, 1}, {-inf, -1}, {nan, nan}, {100, 1}}},
      {normal_cdf, {{inf, 1}, {-inf, 0}, {nan, nan}, {100, 1}, {-40, 0}}},
      {normal_density, {{inf, 0}, {-inf, 0}, {nan, nan}, {100, 0}}},
      {codegen::sigmoid, {{0, 0.5}, {inf, 1}, {-inf, 0}, {nan, nan}}},
  };
  for (const auto& [function, pairs] : cases) {
    expect_special<float>(function, pairs);
    expect_special<double>(function, pairs);
  }
}

TEST(Math, ScalarsHaveTheBitsOfVectors) {
  std::vector<float> x = every_exponent<float>(-20, 8, 200);
  for (const std::string& level : runnable_levels()) {
    for (Function f : {codegen::exp, codegen::tanh, normal_cdf, codegen::sigmoid}) {
      EXPECT_EQ(run(f, level, x), run(f, level, x, true)) << level;
    }
  }
}

TEST(Math, NoLibraryIsCalled) {
  for (const std::string& level : runnable_levels()) {
    for (DType real : {DType::F32, DType::F64}) {
      for (Function f : {codegen::exp, codegen::log, codegen::tanh, normal_cdf, codegen::sigmoid,
                         codegen::rsqrt, codegen::exp_nonpositive, sine}) {
        EXPECT_EQ(map_kernel(f, real, level).assembly().find("call"), std::string::npos) << level;
      }
    }
  }
}

TEST(Math, WholePowersBySquaring) {
  std::vector<double> base = {0.9, 0.999, 0.0, 0.95}, out(4 * 5);
  const std::vector<double> exponents = {0, 1, 2, 1000, 123457};
  std::vector<double> n = exponents;
  JitKernel kernel(
      [&](KernelBuilder& k) {
        k.for_tasks([&](Val) {
          k.loop("base", k.index(4), [&](Val i) {
            k.loop("n", k.index(5), [&](Val j) {
              k.store(k.pointer(2), i * 5 + j,
                      codegen::power(k.load(k.pointer(0), i), k.to_index(k.load(k.pointer(1), j))));
            });
          });
        });
        return k.finish();
      },
      DType::F64, target_of("x86-64-v2"));
  kernel.run({base, n, out}, 1, 0);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 5; ++j) {
      const double exact = std::pow(base[i], exponents[j]);
      EXPECT_NEAR(out[i * 5 + j], exact, 1e-11 * exact) << base[i] << "^" << exponents[j];
    }
  }
}

}  // namespace
}  // namespace tfc::test
