#include "runtime/cpu.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tc {

#if defined(__x86_64__)

namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf) {
  Registers r;
  if (__get_cpuid_max(leaf & 0x80000000u, nullptr) >= leaf) __cpuid_count(leaf, 0, r.a, r.b, r.c, r.d);
  return r;
}

/// Which registers the system saves at a switch of threads.
uint32_t saved_registers() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr bool all(uint32_t value, uint32_t bits) { return (value & bits) == bits; }
constexpr uint32_t bit(int number) { return uint32_t{1} << number; }

}  // namespace

int cpu_level() {
  const Registers one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001u);
  // sse3 ssse3 cmpxchg16b sse4.1 sse4.2 popcnt; lahf
  if (!all(one.c, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) || !all(extended.c, bit(0)))
    return 1;
  // fma movbe osxsave avx f16c; bmi1 avx2 bmi2; lzcnt
  if (!all(one.c, bit(12) | bit(22) | bit(27) | bit(28) | bit(29)) ||
      !all(seven.b, bit(3) | bit(5) | bit(8)) || !all(extended.c, bit(5)) || !all(saved_registers(), 0x06)) {
    return 2;
  }
  // avx512 f dq cd bw vl; opmask and both halves of the zmm registers saved
  if (!all(seven.b, bit(16) | bit(17) | bit(28) | bit(30) | bit(31)) || !all(saved_registers(), 0xe6))
    return 3;
  return 4;
}

#else

int cpu_level() { return 1; }

#endif

}  // namespace tc
