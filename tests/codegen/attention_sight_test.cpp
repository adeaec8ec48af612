// Windows, prefixes, documents, distances and rings of keys, compiled, against the interpreter; and a row's bits through
// the cache.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "attention_cases.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;
using ir::Tensor;

enum Operand { kMask = 3, kOffsets, kPrefix, kDocuments, kKeyDocuments, kPositions, kKeyPositions, kNewK, kNewV };

void set_operand(OpCase& c, size_t slot, Tensor tensor) {
  while (c.operands.size() <= slot) c.operands.push_back(OpCase::absent());
  c.operands[slot] = std::move(tensor);
}

Tensor ids(std::vector<int64_t> shape, const std::function<int64_t(int64_t b, int64_t t)>& value) {
  std::vector<double> values;
  const int64_t width = shape.size() > 1 ? shape[1] : 1;
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t t = 0; t < width; ++t) values.push_back(static_cast<double>(value(b, t)));
  return integer_tensor(DType::I32, std::move(shape), values);
}

OpCase windowed(OpCase c, int64_t window, int64_t after = 0) {
  c.attributes.set("window", window);
  if (after > 0) c.attributes.set("after", after);
  return c;
}

OpCase with_alibi(OpCase c) {
  c.attributes.set("alibi", true);
  return c;
}

OpCase with_prefix(OpCase c) {
  const int64_t T = c.operands[0].shape[1];
  set_operand(c, kPrefix, ids({c.operands[0].shape[0]}, [&](int64_t b, int64_t) { return b == 1 ? 0 : T * 2 / 3; }));
  return c;
}

/// Positions that begin again and jump.
OpCase with_positions(OpCase c) {
  const auto position = [](int64_t b, int64_t t) { return t < 11 ? 3 * t + b : (t - 11) % 29; };
  for (size_t slot : {0u, 1u}) {
    const Tensor& rows = c.operands[slot];
    set_operand(c, slot == 0 ? kPositions : kKeyPositions, ids({rows.shape[0], rows.shape[1]}, position));
  }
  return c;
}

using Document = std::function<int64_t(int64_t b, int64_t t)>;
const Document kPacked = [](int64_t b, int64_t t) { return (t + 7 * b) / 23 - 1; };
const Document kMixed = [](int64_t b, int64_t t) { return (t * t + b) % 3; };

OpCase with_documents(OpCase c, const Document& document) {
  for (size_t slot : {0u, 1u}) {
    const Tensor& rows = c.operands[slot];
    set_operand(c, slot == 0 ? kDocuments : kKeyDocuments, ids({rows.shape[0], rows.shape[1]}, document));
  }
  return c;
}

OpCase with_some_keys(OpCase c) {
  const Tensor& k = c.operands[1];
  std::vector<double> mask;
  for (int64_t i = 0; i < k.shape[0] * k.shape[1]; ++i) mask.push_back(i % 5 != 1);
  set_operand(c, kMask, integer_tensor(DType::U8, {k.shape[0], k.shape[1]}, mask));
  return c;
}

// Few queries, a part of a tile, several tiles and blocks; each case is kernels to compile.
const std::vector<Sizes> kSizes = {{2, 3, 5, 2, 1, 3}, {1, 17, 70, 2, 1, 3}, {1, 150, 150, 2, 1, 3}};

TEST(AttentionSight, WindowsOfEveryLength) {
  for (const Sizes& n : kSizes) expect_both_ways(windowed(forward_case(n, true), 3));
  for (int64_t window : {16, 65}) expect_both_ways(windowed(forward_case(kSizes[2], true), window));
  // Of itself alone a token gets its own value, and the gradients of q and k are zero but for rounding.
  expect_as_interpreted(windowed(forward_case(kSizes[1], true), 1), 3e-6, 1e-14);
  expect_both_ways(windowed(forward_case({1, 40, 31, 2, 2, 33}, true), 17));  // some queries see nothing
}

TEST(AttentionSight, WindowsOfEncoders) {
  expect_both_ways(windowed(forward_case(kSizes[1], false), 17));
  for (const Sizes& n : kSizes) expect_both_ways(windowed(forward_case(n, false), 5, 31));
}

TEST(AttentionSight, Distances) {
  for (bool causal : {false, true}) {
    expect_both_ways(with_alibi(forward_case(kSizes[0], causal)));
    expect_both_ways(with_alibi(forward_case({2, 70, 70, 6, 3, 17}, causal)));
    expect_both_ways(with_alibi(with_positions(forward_case({2, 35, 35, 3, 1, 5}, causal))));
    expect_as_interpreted(with_alibi(with_positions(forward_case(kSizes[0], causal))), 3e-6, 1e-14);
  }
}

TEST(AttentionSight, Prefixes) {
  for (const Sizes& n : kSizes) expect_both_ways(with_prefix(forward_case(n, true)));
  expect_both_ways(windowed(with_prefix(forward_case(kSizes[2], true)), 13));
}

TEST(AttentionSight, Documents) {
  for (const Document& document : {kPacked, kMixed}) {
    for (bool causal : {false, true}) {
      expect_both_ways(with_documents(forward_case(kSizes[2], causal), document));
      expect_both_ways(with_some_keys(with_documents(forward_case({2, 70, 70, 2, 1, 3}, causal), document)));
    }
    expect_both_ways(with_documents(forward_case(kSizes[0], true), document));
    expect_as_interpreted(with_some_keys(with_documents(forward_case({2, 3, 70, 2, 1, 3}, false), document)), 3e-6,
                          1e-14);
  }
}

TEST(AttentionSight, AllTogether) {
  for (const Sizes& n : {Sizes{2, 3, 5, 6, 3, 5}, Sizes{2, 37, 37, 6, 3, 17}, Sizes{1, 150, 150, 2, 1, 5}}) {
    OpCase c = windowed(with_alibi(with_positions(with_prefix(forward_case(n, true)))), 65);
    expect_both_ways(with_documents(c, kPacked));
    expect_both_ways(with_some_keys(with_documents(c, kMixed)));
  }
}

TEST(AttentionSight, WhatStandsInAnotherDocumentOrBeforeTheWindowIsNotRead) {
  const Sizes n{1, 100, 100, 1, 1, 17};
  for (const std::string& level : runnable_levels()) {
    for (OpCase c : {with_documents(forward_case(n, false), [](int64_t, int64_t t) { return t / 50; }),
                     windowed(forward_case(n, true), 30)}) {
      const auto clean = run_compiled(c, level);
      for (int64_t e = 0; e < n.E; ++e) c.operands[1].row(7)[e] = c.operands[2].row(7)[e] = kNaN;
      const auto y = run_compiled(c, level);
      for (int64_t t = 50; t < 100; ++t)
        EXPECT_EQ(0, std::memcmp(clean[0].row(t), y[0].row(t), static_cast<size_t>(n.E) * 8)) << level << " " << t;
      EXPECT_TRUE(std::isnan(y[0].row(8)[0]));
      const auto grad = run_compiled(backward_case(c), level);
      for (int64_t i = 50 * n.E; i < 100 * n.E; ++i) ASSERT_TRUE(std::isfinite(grad[0][i])) << level;
    }
  }
}

Tensor rows_of(const Tensor& x, int64_t b, int64_t first, int64_t count) {
  Tensor part(x.dtype, x.shape);
  part.shape[0] = 1;
  part.shape[1] = count;
  const int64_t width = x.rank() == 3 ? x.shape[2] : 1, from = (b * x.shape[1] + first) * width;
  part.data.assign(x.data.begin() + from, x.data.begin() + from + count * width);
  return part;
}

/// The first `filled` rows of sequence b in a cache of C slots; what nobody has filled is out of any range.
Tensor cache_of(const Tensor& x, int64_t b, int64_t filled, int64_t C) {
  Tensor cache = rows_of(x, b, 0, filled);
  cache.shape[1] = C;
  cache.data.resize(static_cast<size_t>(C * (x.rank() == 3 ? x.shape[2] : 1)),
                    x.dtype == DType::I32 ? -1000000 : kNaN);
  return cache;
}

/// Keys 0..first-1 of sequence b in a ring.
Tensor ring_of(const Tensor& x, int64_t b, int64_t first, int64_t slots) {
  Tensor ring(DType::F64, {1, slots, x.shape[2]});
  for (double& value : ring.data) value = kNaN;
  for (int64_t s = 0; s < first; ++s)
    std::memcpy(ring.row(s % slots), x.row(b * x.shape[1] + s), static_cast<size_t>(x.shape[2]) * 8);
  return ring;
}

/// The outputs of tokens first.. of sequence b, decoded with a cache of C slots, or with a ring of `slots` keys.
Tensor decoded(const OpCase& whole, int64_t b, int64_t first, int64_t count, int64_t C, int64_t slots,
               const std::string& level) {
  OpCase c = whole;
  const bool ring = slots > 0;
  for (size_t slot : {0u, static_cast<unsigned>(kDocuments), static_cast<unsigned>(kPositions)}) {
    if (slot < c.operands.size() && c.operands[slot].shape[0] > 0)
      c.operands[slot] = rows_of(whole.operands[slot], b, first, count);
  }
  for (size_t slot : {static_cast<size_t>(kKeyDocuments), static_cast<size_t>(kKeyPositions)}) {
    if (slot < c.operands.size() && c.operands[slot].shape[0] > 0)
      c.operands[slot] = cache_of(whole.operands[slot], b, first + count, C);
  }
  for (size_t slot : {1u, 2u}) {
    c.operands[slot] = ring ? ring_of(whole.operands[slot], b, first, slots)
                            : cache_of(whole.operands[slot], b, first + count, C);
    if (ring) set_operand(c, kNewK + slot - 1, rows_of(whole.operands[slot], b, first, count));
  }
  if (c.operands.size() > kPrefix && c.operands[kPrefix].shape[0] > 0)
    c.operands[kPrefix] = integer_tensor(DType::I32, {1}, {first == 0 ? whole.operands[kPrefix][b] : 0});
  set_operand(c, kOffsets, integer_tensor(DType::I32, {1}, {static_cast<double>(first)}));
  return run_compiled(c, level)[0];
}

void expect_any_split(OpCase c, int64_t slots) {
  const int64_t T = c.operands[0].shape[1];
  for (DType real : {DType::F32, DType::F64}) {
    c.real = real;
    for (const std::string& level : runnable_levels()) {
      const Tensor all = run_compiled(c, level)[0];
      for (const std::vector<int64_t>& split :
           {std::vector<int64_t>{150}, {100, 1, 1, 40, 2, 4, 1, 1}, {101, 49}, {119, 30, 1}}) {
        int64_t at = 0;
        for (int64_t count : split) {
          const Tensor part = decoded(c, 1, at, count, 155, slots, level);
          EXPECT_EQ(0, std::memcmp(part.data.data(), all.row(T + at),
                                   static_cast<size_t>(count * all.width()) * 8))
              << level << " decoded " << count << " from " << at;
          at += count;
        }
      }
    }
  }
}

TEST(AttentionSight, DecodedInAnySplit) {
  const Sizes n{2, 150, 150, 2, 1, 17};
  expect_any_split(with_alibi(forward_case(n, true)), 0);
  expect_any_split(with_alibi(with_positions(with_documents(forward_case(n, true), kMixed))), 0);
  OpCase prefixed = forward_case(n, true);
  set_operand(prefixed, kPrefix, integer_tensor(DType::I32, {2}, {3, 97}));
  expect_any_split(prefixed, 0);
}

TEST(AttentionSight, DecodedFromARing) {
  const Sizes n{2, 150, 150, 2, 1, 17};
  expect_any_split(windowed(forward_case(n, true), 65), 64);
  expect_any_split(windowed(forward_case(n, true), 5), 67);
  expect_any_split(windowed(with_alibi(with_documents(forward_case(n, true), kPacked)), 80), 79);
  OpCase prefixed = windowed(forward_case(n, true), 65);
  set_operand(prefixed, kPrefix, integer_tensor(DType::I32, {2}, {3, 97}));
  expect_any_split(prefixed, 155);
}

TEST(AttentionSight, RingsAgainstTheInterpreter) {
  for (int64_t T : {1, 3, 40}) {
    OpCase c = windowed(forward_case({2, T, 64, 2, 1, 5}, true), 65);
    set_operand(c, kOffsets, integer_tensor(DType::I32, {2}, {30, 201}));
    set_operand(c, kNewK, random_tensor({2, T, 5}, 7));
    set_operand(c, kNewV, random_tensor({2, T, 5}, 8));
    expect_as_interpreted(c, 3e-6, 1e-14);
  }
}

TEST(AttentionSight, OptimisationDoesNotChangeBits) {
  expect_same_bits_unoptimised(with_documents(
      windowed(with_alibi(with_positions(with_prefix(forward_case({1, 70, 70, 2, 1, 17}, true)))), 33), kPacked));
}

TEST(CacheAppend, RingsKeepTheLastRows) {
  for (int64_t W : {1, 17}) {
    OpCase c{OpKind::CacheAppend,
             {random_tensor({2, 5, W}, 1), random_tensor({2, 13, W}, 2), integer_tensor(DType::I32, {2}, {4, 0})},
             {{"ring", true}}};
    c.contiguous = {0};
    expect_as_interpreted(c, 0, 0);
    std::vector<double> mask;
    for (int64_t i = 0; i < 26; ++i) mask.push_back(i % 13 < (i < 13 ? 7 : 3));
    c.operands.push_back(integer_tensor(DType::U8, {2, 13}, mask));
    expect_as_interpreted(c, 0, 0);
  }
}

TEST(CacheAppend, OfIds) {
  OpCase c{OpKind::CacheAppend,
           {integer_tensor(DType::I32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}),
            integer_tensor(DType::I32, {2, 2}, {-1, -2, -3, -4}), integer_tensor(DType::I32, {2}, {1, 2}),
            integer_tensor(DType::U8, {2, 2}, {1, 1, 1, 0})},
           {}};
  expect_as_interpreted(c, 0, 0);
}

}  // namespace
}  // namespace tfc::test
