// Streaming attention against the interpreter: every kind of visibility, odd sizes, NaN where nobody may
// look, and the promise that a row's bits depend on its own tokens alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "attention_cases.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;
using ir::Tensor;

/// Every third key is padding, and the last ones; what stands there is NaN.
OpCase with_mask(const Sizes& n, bool causal) {
  std::vector<double> mask;
  for (int64_t i = 0; i < n.B * n.S; ++i) mask.push_back(i % 3 != 1 && i % n.S < n.S - i / n.S);
  OpCase c = forward_case(n, causal, integer_tensor(DType::U8, {n.B, n.S}, mask));
  for (int64_t i = 0; i < n.B * n.S; ++i) {
    if (mask[static_cast<size_t>(i)] != 0) continue;
    for (size_t slot : {1u, 2u}) {
      for (int64_t e = 0; e < n.G * n.E; ++e) c.operands[slot].row(i)[e] = kNaN;
    }
  }
  return c;
}

// Few head layouts, since each is a kernel to compile; lengths on both sides of tiles and blocks.
const std::vector<Sizes> kSizes = {{2, 3, 5, 2, 1, 3},    {1, 33, 70, 2, 1, 3},   {1, 1, 4, 1, 1, 17},
                                   {2, 17, 17, 1, 1, 17}, {1, 70, 130, 1, 1, 17}, {1, 40, 31, 2, 2, 33}};

TEST(Attention, EveryKeyVisible) {
  for (const Sizes& n : kSizes) expect_both_ways(forward_case(n, false));
}

TEST(Attention, CausalAlignsAtTheEnd) {
  for (const Sizes& n : kSizes) expect_both_ways(forward_case(n, true));
}

TEST(Attention, HeadsOfEveryWidth) {
  for (int64_t E : {1, 5, 15, 16, 31}) expect_both_ways(forward_case({1, 34, 34, 3, 1, E}, true));
}

TEST(Attention, HeadsThatShareKeys) {
  expect_both_ways(forward_case({2, 9, 9, 8, 4, 5}, true));   // a task for each key head
  expect_both_ways(forward_case({2, 9, 9, 6, 3, 5}, false));  // too few: one for each head
}

TEST(Attention, MaskedKeysAreNotRead) {
  for (const Sizes& n : kSizes) expect_both_ways(with_mask(n, false));
}

TEST(Attention, MaskedKeysUnderACausalMask) {
  for (const Sizes& n : kSizes) expect_both_ways(with_mask(n, true));
}

TEST(Attention, UsualSizes) {
  expect_both_ways(forward_case({1, 100, 100, 2, 2, 64}, true));
  expect_both_ways(forward_case({1, 33, 64, 2, 1, 128}, false));
}

TEST(Attention, RowsWithoutAVisibleKeyAreZerosAndPassNothing) {
  for (bool causal : {false, true}) {
    const Sizes n{2, 9, 9, 2, 1, 5};
    std::vector<double> mask(18, 0);
    for (int i = 4; i < 9; ++i) mask[static_cast<size_t>(i)] = 1;
    OpCase c = forward_case(n, causal, integer_tensor(DType::U8, {2, 9}, mask));
    expect_both_ways(c);
    OpCase grad = backward_case(c);
    for (int64_t t = 0; t < 9; ++t) {  // the second row's sequence has no key at all: NaN there goes nowhere
      for (int64_t e = 0; e < 10; ++e) grad.operands[0].row(9 + t)[e] = grad.operands[1].row(9 + t)[e] = kNaN;
    }
    expect_as_interpreted(grad, 2e-5, 1e-13);
    for (const std::string& level : runnable_levels()) {
      const auto y = run_compiled(c, level);
      EXPECT_EQ(y[1][9 * 2], -kInfinity);
      for (int64_t i = 90; i < 180; ++i) EXPECT_EQ(y[0][i], 0);
    }
  }
}

TEST(Attention, ALaterTokenOfNaNReachesNoEarlierRow) {
  const Sizes n{1, 70, 70, 1, 1, 17};
  for (const std::string& level : runnable_levels()) {
    OpCase c = forward_case(n, true);
    const auto clean = run_compiled(c, level);
    for (int64_t e = 0; e < n.E; ++e) c.operands[1].row(40)[e] = c.operands[2].row(40)[e] = kNaN;
    const auto y = run_compiled(c, level);
    EXPECT_EQ(0, std::memcmp(clean[0].data.data(), y[0].data.data(), static_cast<size_t>(40 * n.E * 8)))
        << level;
    EXPECT_TRUE(std::isnan(y[0].row(40)[0]));
    EXPECT_TRUE(std::isnan(y[0].row(69)[0]));
    const auto grad = run_compiled(backward_case(c), level);
    for (int64_t i = 0; i < 40 * n.E; ++i) ASSERT_TRUE(std::isfinite(grad[0][i])) << level;
  }
}

TEST(Attention, CacheWithOffsets) {
  const Sizes n{3, 4, 90, 2, 1, 17};
  for (bool causal : {false, true}) {
    OpCase c = forward_case(n, causal);
    const std::vector<double> offsets = {0, 13, 71};
    c.operands.push_back(integer_tensor(DType::I32, {3}, offsets));
    for (int64_t b = 0; b < 3; ++b) {  // slots that nobody has filled
      for (int64_t s = static_cast<int64_t>(offsets[static_cast<size_t>(b)]) + (causal ? n.T : 0); s < n.S;
           ++s) {
        for (int64_t e = 0; e < n.E; ++e)
          c.operands[1].row(b * n.S + s)[e] = c.operands[2].row(b * n.S + s)[e] = kNaN;
      }
    }
    expect_as_interpreted(c, 3e-6, 1e-14);
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  OpCase c = forward_case({1, 20, 70, 1, 1, 16}, true);
  for (double& q : c.operands[0].data) q *= 1000;
  expect_as_interpreted(c, 2e-3, 1e-11);
}

Tensor rows_of(const Tensor& x, int64_t b, int64_t first, int64_t count) {
  const int64_t T = x.shape[1], W = x.shape[2];
  return {
      DType::F64, {1, count, W}, std::vector<double>(x.row(b * T + first), x.row(b * T + first) + count * W)};
}

/// The outputs of tokens first..first+count-1 of sequence b, decoded with a cache of C slots.
Tensor decoded(const OpCase& whole, int64_t b, int64_t first, int64_t count, int64_t C,
               const std::string& level) {
  OpCase c = whole;
  const int64_t T = whole.operands[0].shape[1];
  c.operands[0] = rows_of(whole.operands[0], b, first, count);
  for (size_t slot : {1u, 2u}) {
    Tensor cache(DType::F64, {1, C, whole.operands[slot].shape[2]});
    for (double& value : cache.data) value = kNaN;
    for (int64_t i = 0; i < (first + count) * cache.width(); ++i) {
      cache[i] = whole.operands[slot].row(b * T)[i];
    }
    c.operands[slot] = cache;
  }
  c.operands[3] = OpCase::absent();
  c.operands.push_back(integer_tensor(DType::I32, {1}, {static_cast<double>(first)}));
  return run_compiled(c, level)[0];
}

void expect_own_bits(const Sizes& n) {
  for (DType real : {DType::F32, DType::F64}) {
    for (const std::string& level : runnable_levels()) {
      OpCase c = forward_case(n, true);
      c.real = real;
      const Tensor all = run_compiled(c, level)[0];
      const size_t row_bytes = static_cast<size_t>(all.width()) * 8;

      OpCase alone = c;  // one sequence, and a part of it
      for (size_t slot : {0u, 1u, 2u}) alone.operands[slot] = rows_of(c.operands[slot], 1, 0, 41);
      const Tensor first = run_compiled(alone, level)[0];
      EXPECT_EQ(0, std::memcmp(first.data.data(), all.row(n.T), 41 * row_bytes)) << level << " alone";

      OpCase padded = c;  // padding on the right
      std::vector<double> mask(static_cast<size_t>(2 * n.T), 1);
      for (int64_t t = 41; t < n.T; ++t) mask[static_cast<size_t>(n.T + t)] = 0;
      padded.operands[3] = integer_tensor(DType::U8, {2, n.T}, mask);
      const Tensor cut = run_compiled(padded, level)[0];
      EXPECT_EQ(0, std::memcmp(cut.row(n.T), all.row(n.T), 41 * row_bytes)) << level << " padded";

      for (const std::vector<int64_t>& split :
           {std::vector<int64_t>{75}, {1, 1, 1, 30, 2, 40}, {33, 42}, {70, 1, 1, 1, 1, 1}}) {
        int64_t at = 0;
        for (int64_t count : split) {
          const Tensor part = decoded(c, 1, at, count, 80, level);
          EXPECT_EQ(0,
                    std::memcmp(part.data.data(), all.row(n.T + at), static_cast<size_t>(count) * row_bytes))
              << level << " decoded " << count << " from " << at;
          at += count;
        }
      }
    }
  }
}

TEST(Attention, ARowsBitsAreItsOwn) {
  expect_own_bits({2, 75, 75, 2, 1, 17});
  expect_own_bits({2, 75, 75, 1, 1, 72});
}

TEST(Attention, GradientsThatNobodyReads) {
  OpCase c = backward_case(forward_case({1, 7, 9, 2, 1, 5}, true));
  for (uint32_t unused : {0u, 1u, 2u}) {
    c.unused = {unused};
    expect_as_interpreted(c, 2e-5, 1e-13);
  }
  OpCase forward = forward_case({1, 7, 9, 2, 1, 5}, true);
  forward.unused = {1};
  expect_as_interpreted(forward, 3e-6, 1e-14);
}

TEST(Attention, OptimisationDoesNotChangeBits) {
  expect_same_bits_unoptimised(forward_case({1, 40, 40, 2, 1, 17}, true));
}

TEST(CacheAppend, RealRowsGoToTheirSlots) {
  for (int64_t W : {1, 5, 16, 33}) {
    OpCase c{
        OpKind::CacheAppend,
        {random_tensor({2, 9, W}, 1), random_tensor({2, 3, W}, 2), integer_tensor(DType::I32, {2}, {4, 0})},
        {}};
    c.contiguous = {0};
    expect_as_interpreted(c, 0, 0);
    c.operands.push_back(integer_tensor(DType::U8, {2, 3}, {1, 1, 0, 0, 1, 1}));
    expect_as_interpreted(c, 0, 0);
  }
}

}  // namespace
}  // namespace tfc::test
