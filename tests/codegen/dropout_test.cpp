// Dropout against the interpreter, which draws the same numbers bit for bit: alone and in attention.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;
using ir::Tensor;

Tensor call_words(double drops) { return integer_tensor(DType::I32, {5}, {-1234567, 89, 5, -7, drops}); }

Tensor keys(int64_t B, int64_t T, double drops = 1) {
  OpCase c{OpKind::DropoutKeys, {call_words(drops)}, {{"batch", ir::Dim(B)}, {"tokens", ir::Dim(T)}}};
  Tensor words = run_interpreted(c)[0];
  words.dtype = DType::I32;
  return words;
}

TEST(Dropout, KeysAreTheSameBits) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {2, 700}}) {
    for (const double drops : {0.0, 1.0}) {
      OpCase c{OpKind::DropoutKeys, {call_words(drops)}, {{"batch", ir::Dim(B)}, {"tokens", ir::Dim(T)}}};
      c.contiguous = {100};
      expect_as_interpreted(c, 0, 0);
    }
  }
}

OpCase dropout_case(const std::vector<int64_t>& shape, double p, double drops = 1) {
  OpCase c{OpKind::Dropout,
           {random_tensor(shape, 1), keys(shape[0], shape[1], drops)},
           {{"p", p}, {"place", std::string("layers.1.ffn.dropout")}}};
  c.contiguous = {1};
  return c;
}

const std::vector<std::vector<int64_t>> kShapes = {{1, 1, 1},  {2, 3, 5},  {1, 5, 15},
                                                   {3, 1, 17}, {2, 5, 31}, {1, 300, 33}};

TEST(Dropout, DropsTheSameElements) {
  for (const auto& shape : kShapes) {
    for (const double p : {1e-9, 0.1, 0.5, 0.999}) expect_as_interpreted(dropout_case(shape, p), 1e-7, 1e-15);
    expect_as_interpreted(dropout_case(shape, 0.5, 0), 0, 0);
  }
}

TEST(Dropout, AllAreZerosAtOneWhateverTheyWere) {
  OpCase c = dropout_case({2, 3, 17}, 1);
  c.operands[0][5] = std::numeric_limits<double>::quiet_NaN();
  c.operands[0][20] = std::numeric_limits<double>::infinity();
  for (const std::string& level : runnable_levels()) {
    const auto results = run_compiled(c, level);
    for (const double y : results[0].data) EXPECT_EQ(y, 0);
  }
}

/// Attention, or its gradient from the interpreter's o and lse.
OpCase attention_case(int64_t T, int64_t S, int64_t E, bool causal, bool masked, double p, bool backward) {
  const int64_t B = 2, H = 4, G = 2;
  ir::Attributes attributes{{"heads", H},       {"kv_heads", G},     {"head_dim", E},
                            {"scale", 0.4},     {"causal", causal},  {"p", p},
                            {"place", std::string("layers.3.attn")}};
  Tensor mask = OpCase::absent();
  if (masked) {
    mask = Tensor(DType::U8, {B, S});
    for (int64_t i = 0; i < B * S; ++i) mask[i] = i % 3 != 1;
  }
  OpCase c{OpKind::Attention,
           {random_tensor({B, T, H * E}, 1, -2, 2), random_tensor({B, S, G * E}, 2, -2, 2),
            random_tensor({B, S, G * E}, 3), mask},
           attributes};
  const auto add_keys = [&](OpCase& to) {
    while (to.operands.size() < 12) to.operands.push_back(OpCase::absent());
    to.operands.push_back(keys(B, T));
  };
  add_keys(c);
  c.contiguous = {12, 101};
  if (!backward) return c;
  c.real = DType::F64;
  const auto y = run_interpreted(c);
  OpCase grad{OpKind::AttentionGrad,
              {random_tensor({B, T, H * E}, 5), c.operands[0], c.operands[1], c.operands[2], y[0], y[1], mask},
              attributes};
  add_keys(grad);
  grad.contiguous = {5, 12};
  return grad;
}

TEST(Dropout, OfAttentionWeights) {
  for (const bool backward : {false, true}) {
    for (const bool causal : {false, true}) {
      for (const bool masked : {false, true}) {
        for (const auto& [T, S] : {std::pair<int64_t, int64_t>{3, 5}, {35, 70}, {17, 17}, {1, 130}}) {
          SCOPED_TRACE(testing::Message() << T << " " << S << (causal ? " causal" : "") << (masked ? " masked" : "")
                                          << (backward ? " backward" : ""));
          expect_as_interpreted(attention_case(T, S, 5, causal, masked, 0.3, backward), backward ? 2e-5 : 5e-6,
                                backward ? 1e-13 : 1e-14);
        }
      }
    }
  }
}

TEST(Dropout, OfAllAttentionWeights) {
  for (const std::string& level : runnable_levels()) {
    const auto y = run_compiled(attention_case(35, 35, 5, true, false, 1, false), level);
    for (const double o : y[0].data) EXPECT_EQ(o, 0);
    for (const double sum : y[1].data) EXPECT_TRUE(std::isfinite(sum));
    for (const Tensor& gradient : run_compiled(attention_case(35, 35, 5, true, false, 1, true), level)) {
      for (const double g : gradient.data) EXPECT_EQ(g, 0);
    }
  }
}

}  // namespace
}  // namespace tfc::test
