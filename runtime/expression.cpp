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

}  // namespace

int64_t evaluate(const int64_t* program, const Sizes& sizes) {
  int64_t stack[kStack];
  int depth = 0;
  for (;;) {
    const int64_t op = *program++;
    switch (op) {
      case ExprEnd:
        return depth > 0 ? stack[depth - 1] : 0;
      case ExprConst:
        stack[depth++] = *program++;
        break;
      case ExprSymbol:
        stack[depth++] = symbol(sizes, *program++);
        break;
      case ExprCeilDiv:
        stack[depth - 1] = ceil_div(stack[depth - 1], *program++);
        break;
      default:
        --depth;
        stack[depth - 1] = combine(op, stack[depth - 1], stack[depth]);
    }
    if (depth >= kStack) return kMost;
  }
}

}  // namespace tc
