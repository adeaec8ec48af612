#include "runtime/mathematics.h"

#include <stdint.h>
#include <string.h>

namespace tc {

namespace {

constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
constexpr double kTwoPi = 6.28318530717958647693;

/// 1/0!, 1/1!, ... and 1/1, 1/3, 1/5, ...: divided once, when the compiler runs.
constexpr int kTerms = 18;
struct Table {
  double at[kTerms];
};
constexpr Table inverse_factorials() {
  Table table{};
  double factorial = 1;
  for (int n = 0; n < kTerms; ++n) {
    if (n > 0) factorial *= n;
    table.at[n] = 1 / factorial;
  }
  return table;
}
constexpr Table inverse_odds() {
  Table table{};
  for (int n = 0; n < kTerms; ++n) table.at[n] = 1.0 / (2 * n + 1);
  return table;
}
constexpr Table kInverseFactorial = inverse_factorials(), kInverseOdd = inverse_odds();

uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace

// x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
double natural_log(double x) {
  const uint64_t bits = bits_of(x);
  int64_t k = static_cast<int64_t>(bits >> 52) - 1023;
  double m = from_bits((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.41421356237309515) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = kInverseOdd.at[11];
  for (int n = 10; n >= 0; --n) series = series * square + kInverseOdd.at[n];
  const double exponent = static_cast<double>(k);
  return exponent * kLn2High + (2 * s * series + exponent * kLn2Low);
}

// x = k ln 2 + r with |r| <= ln(2) / 2; e^r by its series.
double exponential(double x) {
  if (x < -708) return 0;
  if (x > 709) return __builtin_inf();
  const double scaled = x * 1.44269504088896338700;
  const int64_t k = static_cast<int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double exponent = static_cast<double>(k);
  const double r = (x - exponent * kLn2High) - exponent * kLn2Low;
  double series = kInverseFactorial.at[14];
  for (int n = 13; n >= 0; --n) series = series * r + kInverseFactorial.at[n];
  return series * from_bits(static_cast<uint64_t>(k + 1023) << 52);
}

// Quarters are folded onto angles up to pi/4, where both series converge fast.
void sine_cosine_turns(double turns, double& sine, double& cosine) {
  const int quarter = static_cast<int>(turns * 4 + 0.5);  // nearest multiple of pi/2
  const double angle = (turns - quarter * 0.25) * kTwoPi, square = angle * angle;
  double s = kInverseFactorial.at[17], c = kInverseFactorial.at[16];
  for (int n = 14; n >= 0; n -= 2) {
    s = kInverseFactorial.at[n + 1] - s * square;
    c = kInverseFactorial.at[n] - c * square;
  }
  s *= angle;
  switch (quarter & 3) {
    case 0:
      sine = s, cosine = c;
      break;
    case 1:
      sine = c, cosine = -s;
      break;
    case 2:
      sine = -s, cosine = -c;
      break;
    default:
      sine = -c, cosine = s;
  }
}

}  // namespace tc
