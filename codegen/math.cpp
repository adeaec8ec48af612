// The coefficients come from scripts/fit_math.py.
#include "codegen/math.h"

#include <initializer_list>
#include <limits>

#include "ir/check.h"
#include "llvm/IR/Intrinsics.h"

namespace tfc::codegen {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_double(Val x) { return x.raw()->getType()->getScalarType()->isDoubleTy(); }

/// c0 + c1 x + c2 x^2 + ...
Val polynomial(Val x, std::initializer_list<double> coefficients) {
  KernelBuilder* k = x.builder();
  const double* c = coefficients.begin();
  size_t i = coefficients.size() - 1;
  Val sum = k->same_type_constant(x, c[i]);
  while (i-- > 0) sum = k->fma(sum, x, k->same_type_constant(x, c[i]));
  return sum;
}

// -- the bits of reals
// -------------------------------------------------------------------------------------------

struct Bits {
  KernelBuilder* k;
  int mantissa;         // stored bits: 23, 52
  int64_t bias;         // 127, 1023
  llvm::Type* integer;  // of x's lanes
  llvm::Type* real;

  explicit Bits(Val x) : k(x.builder()), mantissa(is_double(x) ? 52 : 23), bias(is_double(x) ? 1023 : 127) {
    real = x.raw()->getType();
    llvm::Type* scalar = is_double(x) ? k->ir().getInt64Ty() : k->ir().getInt32Ty();
    integer = x.is_vector() ? llvm::FixedVectorType::get(scalar, static_cast<unsigned>(x.lanes())) : scalar;
  }
  Val of(Val x) const { return k->bitcast(x, integer); }
  Val to_real(Val bits) const { return k->bitcast(bits, real); }
  Val number(int64_t value) const { return k->wrap(llvm::ConstantInt::getSigned(integer, value)); }
  Val left(Val bits, int count) const { return k->wrap(k->ir().CreateShl(bits.raw(), number(count).raw())); }
  Val right(Val bits, int count) const {
    return k->wrap(k->ir().CreateLShr(bits.raw(), number(count).raw()));
  }
  Val exclusive_or(Val a, Val b) const { return k->wrap(k->ir().CreateXor(a.raw(), b.raw())); }
};

/// 1.5 * 2^mantissa: adding it to a real of moderate size leaves the nearest whole number in the low bits.
double rounding_number(Val x) { return is_double(x) ? 0x1.8p52 : 0x1.8p23; }

Val copy_sign(Val magnitude, Val sign) {
  KernelBuilder* k = magnitude.builder();
  return k->wrap(k->ir().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.raw(), sign.raw()));
}

// -- exp
// -----------------------------------------------------------------------------------------------------------

/// Where exp leaves the normal numbers.
double least_exponent(Val x) { return is_double(x) ? -708.3964185322641 : -87.33654; }
double greatest_exponent(Val x) { return is_double(x) ? 709.782712893384 : 88.72283; }

/// exp x = 2^n e^r with n = round(x / ln 2) and r = x - n ln 2, |r| <= ln 2 / 2; n goes into the exponent's
/// bits. Only for arguments whose result is normal (others give anything, NaN included).
Val exp_in_range(Val x) {
  KernelBuilder* k = x.builder();
  const Bits bits(x);
  auto c = [&](double value) { return k->same_type_constant(x, value); };
  const double log2_e = 1.4426950408889634;
  const Val shifted = k->fma(x, c(log2_e), c(rounding_number(x)));
  const Val n = shifted - rounding_number(x);
  const double ln2_high = is_double(x) ? 0x1.62e42feep-1 : 0x1.63p-1;  // few bits: n * ln2_high is exact
  const double ln2_low = is_double(x) ? 0x1.a39ef35793c76p-33 : -2.1219444e-4;
  const Val r = k->fma(n, c(-ln2_low), k->fma(n, c(-ln2_high), x));
  const Val tail = is_double(x)
                       ? polynomial(r, {0.5, 0.16666666666666688, 0.041666666666666824, 0.00833333333331385,
                                        0.0013888888888776534, 0.00019841269903626057, 2.4801587569931002e-05,
                                        2.755722688769539e-06, 2.755701784637568e-07, 2.5116059566436982e-08,
                                        2.103495593890712e-09})
                       : polynomial(r, {0.4999999403953552, 0.16666516661643982, 0.041668105870485306,
                                        0.008369199931621552, 0.0013838686281815171});
  const Val fraction = k->fma(r * r, tail, r) + 1.0;
  return bits.to_real(bits.of(fraction) + bits.left(bits.of(shifted), bits.mantissa));
}

}  // namespace

Val exp(Val x) {
  KernelBuilder* k = x.builder();
  auto c = [&](double value) { return k->same_type_constant(x, value); };
  Val result = exp_in_range(k->max(k->min(x, c(greatest_exponent(x))), c(least_exponent(x))));
  result = k->select(x > greatest_exponent(x), c(kInfinity), result);
  result = k->select(x < least_exponent(x), c(0.0), result);
  return k->select(x != x, x, result);
}

Val exp_nonpositive(Val x) {
  KernelBuilder* k = x.builder();
  auto c = [&](double value) { return k->same_type_constant(x, value); };
  Val result = exp_in_range(k->max(x, c(least_exponent(x))));
  result = k->select(x < least_exponent(x), c(0.0), result);
  return k->select(x != x, x, result);
}

// -- log
// -----------------------------------------------------------------------------------------------------------

/// x = 2^n m with m in [sqrt 1/2, sqrt 2); with f = m - 1 and s = f / (2 + f), log m = 2 atanh s, arranged so
/// that the leading term f is exact: log m = f - (f^2/2 - s (f^2/2 + s^2 L(s^2))).
Val log(Val x) {
  KernelBuilder* k = x.builder();
  const Bits bits(x);
  auto c = [&](double value) { return k->same_type_constant(x, value); };
  const bool wide = is_double(x);
  const double least_normal = wide ? 0x1p-1022 : 0x1p-126, lift = wide ? 0x1p54 : 0x1p25;
  const Val tiny = x < least_normal;
  const int64_t root_half = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const int64_t one = bits.bias << bits.mantissa, fraction_mask = (int64_t{1} << bits.mantissa) - 1;
  const Val moved = bits.of(k->select(tiny, x * lift, x)) + bits.number(one - root_half);
  const Val exponent = bits.right(moved, bits.mantissa) - bits.number(bits.bias);
  const Val m = bits.to_real((moved & bits.number(fraction_mask)) + bits.number(root_half));
  const Val whole = bits.to_real(exponent + bits.of(c(rounding_number(x)))) - rounding_number(x);
  const Val n = k->select(tiny, whole - (wide ? 54.0 : 25.0), whole);

  const Val f = m - 1.0, half_square = 0.5 * f * f, s = f / (2.0 + f), z = s * s;
  const Val tail =
      wide ? polynomial(z, {0.6666666666666735, 0.3999999999940937, 0.28571428743681315, 0.22222198429548629,
                            0.1818357232716206, 0.1531383276137875, 0.1479825435586611})
           : polynomial(z, {0.6666677594184875, 0.3997756838798523, 0.29871460795402527});
  const double ln2_high = wide ? 0x1.62e42feep-1 : 0x1.63p-1,
               ln2_low = wide ? 0x1.a39ef35793c76p-33 : -2.1219444e-4;
  const Val rest = k->fma(s, k->fma(z, tail, half_square), n * ln2_low);
  Val result = k->fma(n, c(ln2_high), f - (half_square - rest));

  result = k->select(x > 0.0, result,
                     k->select(x == 0.0, c(-kInfinity), c(std::numeric_limits<double>::quiet_NaN())));
  return k->select(x < kInfinity, result, x);  // infinity and NaN are themselves
}

// -- tanh, sigmoid
// -------------------------------------------------------------------------------------------------

/// An odd polynomial near 0, else 1 - 2 / (e^2|x| + 1), where nothing cancels.
Val tanh(Val x) {
  KernelBuilder* k = x.builder();
  const Val z = x * x, magnitude = k->abs(x);
  const Val tail = is_double(x)
                       ? polynomial(z, {-0.33333333333333315, 0.1333333333333, -0.05396825396618,
                                        0.021869488471649365, -0.008863234354590762, 0.0035921143821650145,
                                        -0.0014557282429050959, 0.0005894610045548715, -0.0002370361547239074,
                                        9.159955316907764e-05, -3.022706563658791e-05, 6.059363557135142e-06})
                       : polynomial(z, {-0.3333328366279602, 0.1333148330450058, -0.053742773830890656,
                                        0.020648062229156494, -0.005714063066989183});
  const Val near = k->fma(x * z, tail, x);
  const Val far = copy_sign(1.0 - 2.0 / (exp(magnitude + magnitude) + 1.0), x);
  return k->select(magnitude < 0.625, near, far);
}

Val sigmoid(Val x) { return 1.0 / (1.0 + exp(-x)); }

Val rsqrt(Val x) { return 1.0 / x.builder()->sqrt(x); }

// -- the normal distribution
// -------------------------------------------------------------------------------------------------

/// The tail behind |x| is e^(-x^2/2) times a function (Mills' ratio) that is smooth and slow in
/// (|x| - 4) / (|x| + 4), so that one polynomial serves everywhere and small tails keep their digits.
Normal normal(Val x) {
  KernelBuilder* k = x.builder();
  auto c = [&](double value) { return k->same_type_constant(x, value); };
  const double farthest = is_double(x) ? 37.6 : 13.2;  // where the tail leaves the normal numbers
  const Val t = k->min(c(farthest), k->abs(x)), u = (t - 4.0) / (t + 4.0);
  const Val ratio =
      is_double(x)
          ? polynomial(u, {0.094410641301969,       -0.1703977215484565,    0.12437925533924657,
                           -0.07170740733764831,    0.030864804107126463,   -0.008492095484177519,
                           0.0005075620598741443,   0.0006388138719610003,  -0.00018718412385730217,
                           -4.555498489508795e-05,  2.864753660258689e-05,  4.631677544784038e-06,
                           -4.300818319848947e-06,  -8.2886911259927e-07,   6.557716733142746e-07,
                           2.033008115656486e-07,   -8.700459337576025e-08, -4.766444041591241e-08,
                           4.6074203491499895e-09,  7.057475729917794e-09,  1.2419207380488952e-09})
          : polynomial(u, {0.09441065043210983, -0.1703980267047882, 0.1243784949183464, -0.07169997692108154,
                           0.03087746724486351, -0.008535587228834629, 0.00043005801853723824,
                           0.0007009392720647156, -2.9352511774050072e-05});
  const Val power = k->select(t == farthest, c(0.0), exp_in_range(-0.5 * (t * t)));
  const Val tail = power * ratio;
  return {k->select(x > 0.0, 1.0 - tail, tail), 0.39894228040143268 * power};
}

// -- sin and cos
// ---------------------------------------------------------------------------------------------------

/// r = x - n pi/2 with pi/2 in four pieces; n has 31 bits and the first three pieces 22, so the products are
/// exact (Cody and Waite 1980), then polynomials on [-pi/4, pi/4] and the quadrant's swap and signs.
SinCos sin_cos(Val x) {
  KernelBuilder* k = x.builder();
  if (!is_double(x)) {
    const SinCos wide = sin_cos(k->to_double(x));
    return {k->to_float(wide.sin), k->to_float(wide.cos)};
  }
  const Bits bits(x);
  auto c = [&](double value) { return k->same_type_constant(x, value); };
  const Val shifted = k->fma(x, c(0.6366197723675814), c(rounding_number(x)));
  const Val n = shifted - rounding_number(x), quadrant = bits.of(shifted);
  Val r = x;
  for (double piece : {0x1.921fbp+0, 0x1.5110bp-22, 0x1.1846980p-44, 0x1.3198a2e037073p-69})
    r = k->fma(n, c(-piece), r);

  const Val z = r * r;
  const Val sine =
      k->fma(r * z,
             polynomial(z, {-0.16666666666666632, 0.008333333333322486, -0.00019841269829853388,
                            2.7557313705071366e-06, -2.505075988976783e-08, 1.589688644162803e-10}),
             r);
  const Val cosine =
      k->fma(z * z,
             polynomial(z, {0.0416666666666666, -0.0013888888888874474, 2.480158728967155e-05,
                            -2.7557314400994353e-07, 2.0875729266629905e-09, -1.1359932874045317e-11}),
             k->fma(z, c(-0.5), c(1.0)));
  const Val swap = (quadrant & bits.number(1)) != bits.number(0);
  auto with_sign = [&](Val value, Val turns) {  // bit 1 of the turns is the sign
    return bits.to_real(bits.exclusive_or(bits.of(value), bits.left(turns & bits.number(2), 62)));
  };
  return {with_sign(k->select(swap, cosine, sine), quadrant),
          with_sign(k->select(swap, sine, cosine), quadrant + bits.number(1))};
}

Val power(Val base, Val n) {
  KernelBuilder* k = base.builder();
  Var result = k->var(k->same_type_constant(base, 1.0)), square = k->var(base), rest = k->var(n);
  k->loop("power", k->index(64), [&](Val) {  // the bits of n from the least
    const Val bit = rest.get() & k->index(1);
    result.set(k->select(bit != k->index(0), result.get() * square.get(), result.get()));
    square.set(square.get() * square.get());
    rest.set(k->wrap(k->ir().CreateLShr(rest.get().raw(), uint64_t{1})));
  });
  return result.get();
}

}  // namespace tfc::codegen
