#include "ir/dim.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/type.h"

namespace tfc::ir {
namespace {

const Dim B = Symbol::B, T = Symbol::T, S = Symbol::S, I = Symbol::I;

TEST(Dim, EqualByForm) {
  EXPECT_EQ((B + T) * (B - T), B * B - T * T);
  EXPECT_EQ(B * T + Dim(2) * T * B, Dim(3) * T * B);
  EXPECT_TRUE((B * T - T * B).is_zero());
  EXPECT_FALSE(B == T);
  EXPECT_FALSE(B + Dim(1) == B + Dim(2));
  EXPECT_EQ(Dim(0) * (B + T), Dim());
}

TEST(Dim, Text) {
  EXPECT_EQ((Dim(3072) * B * T + Dim(2)).text(), "3072*B*T+2");
  EXPECT_EQ((B - T).text(), "B-T");
  EXPECT_EQ((Dim(-1) * B - Dim(4)).text(), "-B-4");
  EXPECT_EQ(Dim().text(), "0");
  EXPECT_EQ(ceildiv(B * T, 64).text(), "ceildiv(B*T,64)");
  EXPECT_EQ(min(T, S).text(), min(S, T).text());
}

TEST(Dim, FoldsCalls) {
  EXPECT_EQ(ceildiv(Dim(7), 4), Dim(2));
  EXPECT_EQ(ceildiv(Dim(-7), 4), Dim(-1));
  EXPECT_EQ(ceildiv(Dim(8) * B * T + Dim(4), 4), Dim(2) * B * T + Dim(1));
  EXPECT_EQ(ceildiv(B, 1), B);
  EXPECT_EQ(align_up(Dim(65), 64), Dim(128));
  EXPECT_EQ(align_up(Dim(64) * B, 64), Dim(64) * B);
  EXPECT_EQ(max(B, B), B);
  EXPECT_EQ(max(Dim(3), Dim(5)), Dim(5));
  EXPECT_EQ(min(Dim(3), Dim(5)), Dim(3));
}

TEST(Dim, ExtremesHaveOneForm) {
  EXPECT_EQ(max(Dim(512) * B * T, Dim(1536) * B * T), Dim(1536) * B * T);
  EXPECT_EQ(min(Dim(512) * B * T, Dim(1536) * B * T + Dim(64)), Dim(512) * B * T);
  EXPECT_EQ(max(B, max(T, S)), max(max(S, B), T));
  EXPECT_EQ(max(Dim(2) * B, max(T, B)), max(T, Dim(2) * B));
  EXPECT_EQ(max(T, Dim(0)), T);
  EXPECT_TRUE((B * T + Dim(1)).never_negative());
  EXPECT_FALSE((B - T).never_negative());
  EXPECT_FALSE(ceildiv(B - Dim(1), 2).never_negative());
  EXPECT_TRUE(max(B - T, T).never_negative());
}

TEST(Dim, ConstantAndMentions) {
  EXPECT_EQ(Dim(5).constant(), 5);
  EXPECT_EQ((B - B + Dim(5)).constant(), 5);
  EXPECT_FALSE(B.constant().has_value());
  EXPECT_TRUE(ceildiv(I + T, 3).mentions(Symbol::I));
  EXPECT_TRUE(min(B, S).mentions(Symbol::S));
  EXPECT_FALSE(ceildiv(I + T, 3).mentions(Symbol::B));
}

/// A random expression with its value at a point, computed beside it.
struct Made {
  Dim dim;
  int64_t value;
};

Made make(std::mt19937& random, const Point& point, int depth) {
  const int choice = static_cast<int>(random() % (depth == 0 ? 2 : 8));
  if (choice == 0) {
    const int64_t number = static_cast<int64_t>(random() % 9) - 4;
    return {Dim(number), number};
  }
  if (choice == 1) {
    const Symbol symbol = static_cast<Symbol>(random() % kSymbolCount);
    return {Dim(symbol), point[symbol]};
  }
  const Made a = make(random, point, depth - 1), b = make(random, point, depth - 1);
  switch (choice) {
    case 2:
    case 3:
      return {a.dim + b.dim, a.value + b.value};
    case 4:
      return {a.dim - b.dim, a.value - b.value};
    case 5:
      return {a.dim * b.dim, a.value * b.value};
    case 6:
      return {min(a.dim, b.dim), std::min(a.value, b.value)};
    default: {
      const int64_t n = static_cast<int64_t>(random() % 5) + 1;
      const int64_t quotient = a.value / n + (a.value % n > 0 ? 1 : 0);
      return {max(ceildiv(a.dim, n), b.dim), std::max(quotient, b.value)};
    }
  }
}

/// What the run time does with an encoded program.
int64_t run_program(const std::vector<int64_t>& code, const Point& point) {
  std::vector<int64_t> stack;
  const auto pop = [&] {
    const int64_t top = stack.back();
    stack.pop_back();
    return top;
  };
  for (size_t i = 0; static_cast<DimCode>(code.at(i)) != DimCode::End; ++i) {
    switch (static_cast<DimCode>(code[i])) {
      case DimCode::Const:
        stack.push_back(code[++i]);
        continue;
      case DimCode::Symbol:
        stack.push_back(point.values[code[++i]]);
        continue;
      case DimCode::CeilDiv: {
        const int64_t a = pop(), n = code[++i];
        stack.push_back(a / n + (a % n > 0 ? 1 : 0));
        continue;
      }
      default:
        break;
    }
    const int64_t b = pop(), a = pop();
    switch (static_cast<DimCode>(code[i])) {
      case DimCode::Add:
        stack.push_back(a + b);
        break;
      case DimCode::Mul:
        stack.push_back(a * b);
        break;
      case DimCode::Min:
        stack.push_back(std::min(a, b));
        break;
      case DimCode::Max:
        stack.push_back(std::max(a, b));
        break;
      default:
        ADD_FAILURE() << "unknown code " << code[i];
    }
  }
  EXPECT_EQ(stack.size(), 1u);
  return stack.back();
}

TEST(Dim, RandomExpressionsEvaluateEncodeAndReadBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Point point;
    for (int64_t& value : point.values) value = static_cast<int64_t>(random() % 7) + 1;
    const Made made = make(random, point, 4);
    EXPECT_EQ(made.dim.at(point), made.value) << made.dim.text();
    const std::optional<Dim> back = Dim::parse(made.dim.text());
    ASSERT_TRUE(back.has_value()) << made.dim.text();
    EXPECT_EQ(*back, made.dim);
    EXPECT_EQ(back->text(), made.dim.text());
    std::vector<int64_t> code;
    made.dim.encode(code);
    EXPECT_EQ(run_program(code, point), made.value) << made.dim.text();
  }
}

TEST(Dim, OrderIsTotal) {
  std::mt19937 random(3);
  const Point point;
  for (int round = 0; round < 300; ++round) {
    const Dim a = make(random, point, 3).dim, b = make(random, point, 3).dim;
    EXPECT_EQ((a < b) + (b < a) + (a == b), 1) << a.text() << " and " << b.text();
  }
}

TEST(Dim, RefusesGarbage) {
  for (const char* text : {"", "+", "B*", "B T", "ceildiv(B)", "ceildiv(B,0)", "min(B)", "Q", "3x", "(B",
                           "B)", "--B", "99999999999999999999", "ceildiv(B,T)"})
    EXPECT_FALSE(Dim::parse(text).has_value()) << text;
  EXPECT_FALSE(Dim::parse(std::string(100000, '(')).has_value());  // and does not run out of stack
}

TEST(Type, Text) {
  const Type type{DType::F32, {B, T, 768}};
  EXPECT_EQ(type.text(), "f32[B,T,768]");
  EXPECT_EQ(Type::parse("f32[B,T,768]"), type);
  EXPECT_EQ(Type::parse("f64[]"), (Type{DType::F64, {}}));
  EXPECT_EQ(Type::parse("u8[min(B,T),2]"), (Type{DType::U8, {min(B, T), 2}}));
  EXPECT_FALSE(Type::parse("f16[B]").has_value());
  EXPECT_FALSE(Type::parse("f32[B,]").has_value());
  EXPECT_FALSE(Type::parse("f32").has_value());
  EXPECT_EQ(type.rows(), B * T);
  EXPECT_EQ(type.width(), Dim(768));
  EXPECT_EQ(type.bytes(), Dim(4 * 768) * B * T);
  EXPECT_EQ((Type{DType::F64, {}}).bytes(), Dim(8));
}

}  // namespace
}  // namespace tfc::ir
