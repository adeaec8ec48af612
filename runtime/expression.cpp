#include "runtime/expression.h"

#include "runtime/memory.h"

namespace tc {

namespace {

// Programs are sums of products of a few factors: nesting stays far below this.
constexpr int kStack = 32;

int64_t symbol(const Sizes& sizes, int64_t index) {
  switch (index) {
    case 0:
      return sizes.B;
    case 1:
      return sizes.T;
    case 2:
      return sizes.S;
    case 3:
      return sizes.C;
    default:
      return sizes.I;
  }
}

int64_t ceil_div(int64_t a, int64_t divisor) {
  if (a == kMost) return kMost;
  return a >= 0 ? a / divisor + (a % divisor != 0) : -(-a / divisor);
}

int64_t combine(int64_t op, int64_t a, int64_t b) {
  switch (op) {
    case ExprAdd:
      return plus(a, b);
    case ExprMul:
      return times(a, b);
    case ExprMin:
      return a < b ? a : b;
    default:
      return a > b ? a : b;
  }
}

/// The word that `program` points to, which then points behind it.
int64_t next_word(const uint8_t*& program) {
  uint64_t word = 0;
  unsigned bits = 0;
  uint8_t byte;
  do {
    byte = *program++;
    word |= static_cast<uint64_t>(byte & 0x7f) << bits;
    bits += 7;
  } while (byte & 0x80);
  if (bits < 64 && (byte & 0x40)) word |= ~uint64_t{0} << bits;  // of a negative number
  return static_cast<int64_t>(word);
}

}  // namespace

bool is_constant(const uint8_t* program, int64_t& value) {
  if (next_word(program) != ExprConst) return false;
  value = next_word(program);
  return next_word(program) == ExprEnd;
}

int64_t evaluate(const uint8_t* program, const Sizes& sizes) {
  int64_t stack[kStack];
  int depth = 0;
  for (;;) {
    const int64_t op = next_word(program);
    switch (op) {
      case ExprEnd:
        return depth > 0 ? stack[depth - 1] : 0;
      case ExprConst:
        stack[depth++] = next_word(program);
        break;
      case ExprSymbol:
        stack[depth++] = symbol(sizes, next_word(program));
        break;
      case ExprCeilDiv:
        stack[depth - 1] = ceil_div(stack[depth - 1], next_word(program));
        break;
      default:
        --depth;
        stack[depth - 1] = combine(op, stack[depth - 1], stack[depth]);
    }
    if (depth >= kStack) return kMost;
  }
}

}  // namespace tc
