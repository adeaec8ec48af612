// The weights of attention against the interpreter, from its log-sums: every kind of visibility, at odd sizes.
#include <gtest/gtest.h>

#include "attention_cases.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;

/// What a forward case's weights are, with the interpreter's log-sums; `queries`: u8[B,T], or absent.
OpCase weights_case(OpCase forward, ir::Tensor queries = OpCase::absent()) {
  forward.real = DType::F64;
  const auto y = run_interpreted(forward);
  OpCase c{OpKind::AttentionWeights, {forward.operands[0], forward.operands[1], y[1]}, forward.attributes};
  for (size_t slot = 3; slot < 5; ++slot)
    c.operands.push_back(slot < forward.operands.size() ? forward.operands[slot] : OpCase::absent());
  c.operands.push_back(std::move(queries));
  for (size_t slot = 5; slot < forward.operands.size(); ++slot) c.operands.push_back(forward.operands[slot]);
  c.contiguous = {2, 100};
  return c;
}

void expect_weights(const OpCase& forward, ir::Tensor queries = OpCase::absent()) {
  expect_as_interpreted(weights_case(forward, std::move(queries)), 1e-5, 1e-13);
}

TEST(AttentionWeights, EverySizeAndHead) {
  for (int64_t E : {1, 3, 15, 16, 17, 31}) {
    for (bool causal : {false, true}) expect_weights(forward_case({2, 3, 5, 4, 2, E}, causal));
  }
  for (const auto& [T, S] : {std::pair(1, 1), {3, 3}, {15, 17}, {33, 70}, {1, 31}})
    expect_weights(forward_case({1, T, S, 3, 1, 7}, T <= S));
}

TEST(AttentionWeights, MaskedKeysAndQueriesAreZerosAndNotRead) {
  const Sizes n{2, 9, 18, 2, 1, 5};
  std::vector<double> keys, queries;
  for (int64_t i = 0; i < n.B * n.S; ++i) keys.push_back(i % 3 != 1);
  for (int64_t i = 0; i < n.B * n.T; ++i) queries.push_back(i % n.T < 6);
  for (bool causal : {false, true}) {
    OpCase c = weights_case(forward_case(n, causal, integer_tensor(DType::U8, {n.B, n.S}, keys)),
                            integer_tensor(DType::U8, {n.B, n.T}, queries));
    for (int64_t i = 0; i < n.B * n.S; ++i)
      for (int64_t e = 0; keys[static_cast<size_t>(i)] == 0 && e < n.E; ++e) c.operands[1].row(i)[e] = kNaN;
    for (int64_t i = 0; i < n.B * n.T; ++i)
      for (int64_t e = 0; queries[static_cast<size_t>(i)] == 0 && e < 2 * n.E; ++e) c.operands[0].row(i)[e] = kNaN;
    expect_as_interpreted(c, 1e-5, 1e-13);
  }
}

TEST(AttentionWeights, AQueryThatSeesNothingHasZeros) {
  expect_weights(forward_case({2, 4, 5, 2, 1, 3}, false, integer_tensor(DType::U8, {2, 5}, std::vector<double>(10, 0))));
}

TEST(AttentionWeights, WindowsPrefixesDocumentsAndDistances) {
  const Sizes n{2, 20, 20, 4, 2, 9};
  std::vector<double> documents, positions;
  for (int64_t i = 0; i < 40; ++i) documents.push_back(static_cast<double>(i % 20 / 7)), positions.push_back(static_cast<double>(i % 7));
  const ir::Tensor by_token = integer_tensor(DType::I32, {2, 20}, documents),
                   places = integer_tensor(DType::I32, {2, 20}, positions),
                   prefix = integer_tensor(DType::I32, {2}, {0, 11}), none = OpCase::absent();
  for (int64_t window : {0, 5}) {
    OpCase c = forward_case(n, true);
    if (window > 0) c.attributes.set("window", window);
    c.operands.insert(c.operands.end(), {none, prefix, by_token, by_token});
    expect_weights(c);
    c.attributes.set("alibi", true);
    expect_weights(c);
    c.operands.insert(c.operands.end(), {places, places});
    expect_weights(c);
  }
  OpCase encoder = forward_case(n, false);
  encoder.attributes.set("window", int64_t{4});
  encoder.attributes.set("after", int64_t{2});
  expect_weights(encoder);
}

TEST(AttentionWeights, CacheWithOffsets) {
  const Sizes n{3, 4, 33, 2, 1, 17};
  OpCase c = forward_case(n, true);
  const std::vector<double> offsets = {0, 13, 29};
  c.operands.push_back(integer_tensor(DType::I32, {3}, offsets));
  OpCase weights = weights_case(c);
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t s = static_cast<int64_t>(offsets[static_cast<size_t>(b)]) + n.T; s < n.S; ++s)
      for (int64_t e = 0; e < n.E; ++e) weights.operands[1].row(b * n.S + s)[e] = kNaN;
  expect_as_interpreted(weights, 1e-5, 1e-13);
}

}  // namespace
}  // namespace tfc::test
