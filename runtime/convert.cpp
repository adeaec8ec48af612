#include "runtime/convert.h"

#include <string.h>

namespace tc {

namespace {

constexpr int kMantissa = 52;  // bits of a double's
constexpr uint64_t kInfinity = uint64_t{0x7FF} << kMantissa;

template <class Bits>
Bits load(const char* at) {
  Bits bits;
  memcpy(&bits, at, sizeof bits);
  return bits;
}

uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// A number of `exponent` and `mantissa` bits as a double's bits. Integers all the way: a conversion by the
/// processor would change the NaNs that signal.
template <int exponent, int mantissa>
uint64_t widened(uint64_t bits) {
  constexpr uint64_t kExponents = (uint64_t{1} << exponent) - 1, kBias = kExponents / 2;
  const uint64_t sign = (bits >> (exponent + mantissa)) << 63;
  const uint64_t power = bits >> mantissa & kExponents;
  const uint64_t fraction = bits & ((uint64_t{1} << mantissa) - 1);
  if (power == kExponents) return sign | kInfinity | fraction << (kMantissa - mantissa);
  if (power != 0) return sign | (power - kBias + 1023) << kMantissa | fraction << (kMantissa - mantissa);
  // Subnormal: an integer times the smallest one, which is exact.
  constexpr uint64_t kSmallest = (1023 - kBias + 1 - mantissa) << kMantissa;
  return sign | bits_of(static_cast<double>(fraction) * double_of(kSmallest));
}

template <StoredType type>
uint64_t number(const char* source, int64_t index) {
  if constexpr (type == StoredF64) return load<uint64_t>(source + index * 8);
  if constexpr (type == StoredF32) return widened<8, 23>(load<uint32_t>(source + index * 4));
  if constexpr (type == StoredF16) return widened<5, 10>(load<uint16_t>(source + index * 2));
  if constexpr (type == StoredBF16) return widened<8, 7>(load<uint16_t>(source + index * 2));
}

void store(double* target, uint64_t bits) { memcpy(target, &bits, sizeof bits); }

void store(float* target, uint64_t bits) {
  const bool is_nan = (bits & ~(uint64_t{1} << 63)) > kInfinity;
  if (!is_nan) {
    *target = static_cast<float>(double_of(bits));
    return;
  }
  uint32_t narrow = static_cast<uint32_t>(bits >> 63) << 31 | 0x7F800000 |
                    static_cast<uint32_t>(bits >> (kMantissa - 23) & 0x7FFFFF);
  if ((narrow & 0x7FFFFF) == 0) narrow |= 0x400000;  // its payload was in the bits that are gone
  memcpy(target, &narrow, sizeof narrow);
}

template <StoredType from, class Real>
void convert_all(const char* source, char* target, int64_t count) {
  Real* const numbers = reinterpret_cast<Real*>(target);
  for (int64_t i = 0; i < count; ++i) store(numbers + i, number<from>(source, i));
}

template <class Real>
void convert_to(StoredType from, const char* source, char* target, int64_t count) {
  switch (from) {
    case StoredF64:
      return convert_all<StoredF64, Real>(source, target, count);
    case StoredF32:
      return convert_all<StoredF32, Real>(source, target, count);
    case StoredF16:
      return convert_all<StoredF16, Real>(source, target, count);
    default:
      return convert_all<StoredBF16, Real>(source, target, count);
  }
}

uint64_t any_number(StoredType type, const char* source, int64_t index) {
  switch (type) {
    case StoredF64:
      return number<StoredF64>(source, index);
    case StoredF32:
      return number<StoredF32>(source, index);
    case StoredF16:
      return number<StoredF16>(source, index);
    default:
      return number<StoredBF16>(source, index);
  }
}

}  // namespace

void convert(StoredType from, const char* source, int32_t real, char* target, int64_t count) {
  const StoredType own = real == TypeF64 ? StoredF64 : StoredF32;
  if (from == own) {
    memcpy(target, source, static_cast<size_t>(count * stored_bytes(own)));
  } else if (real == TypeF64) {
    convert_to<double>(from, source, target, count);
  } else {
    convert_to<float>(from, source, target, count);
  }
}

int64_t first_difference(StoredType a_type, const char* a, StoredType b_type, const char* b, int64_t count) {
  if (a_type == b_type && memcmp(a, b, static_cast<size_t>(count * stored_bytes(a_type))) == 0) return -1;
  for (int64_t i = 0; i < count; ++i) {
    if (any_number(a_type, a, i) != any_number(b_type, b, i)) return i;
  }
  return -1;
}

}  // namespace tc
