// The floating-point environment of our own code. Results must not depend on the host's rounding mode or
// traps, and float32 code flushes denormals; the host's state is back, bit for bit, when the scope ends.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tc {

enum class Denormals : unsigned char { Keep, Flush };

class FloatingPointScope {
 public:
#if defined(__x86_64__)
  explicit FloatingPointScope(Denormals denormals) : host_(_mm_getcsr()) {
    constexpr unsigned kDefault = 0x1f80;         // round to nearest, all exceptions masked
    constexpr unsigned kFlush = 0x8000 | 0x0040;  // results and operands
    _mm_setcsr(denormals == Denormals::Flush ? (kDefault | kFlush) : kDefault);
  }
  ~FloatingPointScope() { _mm_setcsr(host_); }

 private:
  unsigned host_;
#else
  explicit FloatingPointScope(Denormals) {}
#endif
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;
};

/// 0 where nothing counts.
inline double mean_of(double sum, double count) {
  const FloatingPointScope scope(Denormals::Keep);
  // Volatile: else the compiler may move the division, which to it has no effects, out of the scope.
  volatile const double inside = sum;
  volatile const double mean = count > 0 ? inside / count : 0;
  return mean;
}

}  // namespace tc
