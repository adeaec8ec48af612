// Mixtures of experts, compiled, against the interpreter: routing, the way to the experts and back, their
// products.
#include <gtest/gtest.h>

#include <algorithm>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::Attributes;
using ir::DType;
using ir::OpKind;
using ir::Tensor;

constexpr double kF32 = 2e-6, kF64 = 1e-14;

struct Routing {
  int64_t B, T, X, top_k;
  bool renormalize = true;
  double capacity = 0;
  bool masked = false;
  bool equal = false;  // logits: ties everywhere

  std::string text() const {
    return "B=" + std::to_string(B) + " T=" + std::to_string(T) + " X=" + std::to_string(X) +
           " top_k=" + std::to_string(top_k) + (renormalize ? "" : " plain") +
           " capacity=" + std::to_string(capacity) + (masked ? " masked" : "") + (equal ? " ties" : "");
  }
  Attributes attributes() const {
    return {{"top_k", top_k}, {"renormalize", renormalize}, {"capacity", capacity}};
  }
  Tensor logits() const {
    Tensor tensor = random_tensor({B, T, X}, 1, -2, 2);
    if (equal) tensor.data.assign(tensor.data.size(), 0.25);
    return tensor;
  }
  Tensor mask() const {
    if (!masked) return OpCase::absent();
    std::vector<double> values;
    for (int64_t i = 0; i < B * T; ++i) values.push_back(i % 3 != 1);
    return integer_tensor(DType::U8, {B, T}, values);
  }
  OpCase route() const { return {OpKind::Route, {logits(), mask()}, attributes()}; }
};

/// weights, experts, positions, starts
std::vector<Tensor> routed(const Routing& routing) {
  std::vector<Tensor> results = run_interpreted(routing.route());
  for (size_t i = 1; i < 4; ++i) results[i].dtype = DType::I32;
  return results;
}

const std::vector<Routing>& routings() {
  static const std::vector<Routing> all = {
      {1, 1, 1, 1},
      {1, 1, 8, 2},
      {1, 3, 2, 2, false},
      {1, 15, 3, 1, false},
      {1, 17, 8, 2},
      {1, 17, 17, 3, true, 0, true},
      {2, 17, 5, 2, true, 0.75, true},
      {3, 5, 4, 4, false, 0.5},
      {1, 17, 4, 2, true, 0, false, true},   // every token goes to experts 0 and 1
      {1, 33, 3, 1, false, 0, false, true},  // and to expert 0 alone: more rows than a tile has
  };
  return all;
}

class Experts : public testing::TestWithParam<Routing> {
 protected:
  const Routing& routing() const { return GetParam(); }
  Tensor rows(int64_t width, unsigned seed) const {
    return random_tensor({routing().B * routing().T, routing().top_k, width}, seed);
  }
  /// The choices as [B*T, top_k]: `gap` then falls on rows alone.
  Tensor flat(Tensor choices) const {
    choices.shape = {routing().B * routing().T, routing().top_k};
    return choices;
  }
};

TEST_P(Experts, Route) {
  OpCase c = routing().route();
  c.contiguous = {100};
  expect_as_interpreted(c, kF32, kF64);
}

TEST_P(Experts, RouteGradient) {
  const std::vector<Tensor> to = routed(routing());
  OpCase c{OpKind::RouteGrad,
           {random_tensor({routing().B, routing().T, routing().top_k}, 2), to[0], to[1], routing().logits()},
           {{"renormalize", routing().renormalize}}};
  c.contiguous = {0, 1};
  if (routing().top_k == 1 && routing().renormalize) return;  // zeros, but for rounding
  expect_as_interpreted(c, 1e-5, 1e-13);
}

/// The words that dropout draws from, sorted as the rows are.
TEST_P(Experts, KeysOfDropout) {
  const std::vector<Tensor> to = routed(routing());
  std::vector<double> words;
  for (int64_t i = 0; i < routing().B * routing().T; ++i)
    for (const int64_t word : {1664525 * i + 1013904223, -22695477 * i, i % 3}) words.push_back(static_cast<int32_t>(word));
  const Tensor keys = integer_tensor(DType::I32, {routing().B, routing().T, 3}, words);
  expect_as_interpreted({OpKind::ExpertKeys, {keys, to[1], to[2], to[3]}}, 0, 0);
}

TEST_P(Experts, ToExpertsAndBack) {
  const std::vector<Tensor> to = routed(routing());
  const int64_t tokens = routing().B * routing().T;
  for (const int64_t width : {1, 15, 17}) {
    expect_as_interpreted({OpKind::Dispatch, {random_tensor({routing().B, routing().T, width}, 3), to[2], to[3]}}, 0, 0);
    expect_as_interpreted({OpKind::Combine, {rows(width, 4), flat(to[2]), to[3], flat(to[0])}}, kF32, kF64);
    expect_as_interpreted({OpKind::Combine, {rows(width, 4), flat(to[2]), to[3]}}, kF32, kF64);
    expect_as_interpreted(
        {OpKind::CombineGrad,
         {random_tensor({tokens, width}, 5), rows(width, 6), flat(to[2]), to[3], flat(to[0])}},
        kF32, kF64);
  }
}

TEST_P(Experts, Products) {
  const std::vector<Tensor> to = routed(routing());
  const int64_t X = routing().X;
  for (const auto& [N, K] : {std::pair<int64_t, int64_t>{1, 3}, {17, 15}, {33, 65}}) {
    const Tensor w = random_tensor({X * N, K}, 7), b = random_tensor({X * N}, 8);
    expect_as_interpreted({OpKind::ExpertLinear, {rows(K, 9), w, b, to[3]}}, 1e-5, 1e-13);
    expect_as_interpreted({OpKind::ExpertLinear, {rows(K, 9), w, OpCase::absent(), to[3]}}, 1e-5, 1e-13);
    expect_as_interpreted({OpKind::ExpertLinearDx, {rows(N, 10), w, to[3]}}, 1e-5, 1e-13);
    expect_as_interpreted({OpKind::ExpertLinearDw, {rows(N, 10), rows(K, 9), to[3]}}, 1e-5, 1e-13);
    expect_as_interpreted({OpKind::ExpertColumnSum, {rows(N, 10), to[3]}}, kF32, kF64);
  }
}

TEST_P(Experts, Balance) {
  const std::vector<Tensor> to = routed(routing());
  OpCase c{OpKind::Balance, {routing().logits(), to[1]}, {{"factor", 0.3}}};
  expect_as_interpreted(c, kF32, kF64);
  Tensor upstream(DType::F64, {}, {1.7});
  const Tensor slopes = run_interpreted(c)[1];
  const auto [least, greatest] = std::minmax_element(slopes.data.begin(), slopes.data.end());
  if (routing().equal || *greatest - *least < 1e-12) return;  // zeros, but for rounding
  expect_as_interpreted({OpKind::BalanceGrad, {upstream, slopes, to[1], routing().logits()}}, 1e-5, 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Routings, Experts, testing::ValuesIn(routings()),
                         [](const auto& info) { return "case" + std::to_string(info.index); });

/// More rows than a block of a task has, an expert without any, and blocks of one row.
TEST(ExpertProducts, ManyRows) {
  const std::vector<double> starts = {0, 300, 300, 301, 557, 1100};
  const Tensor to = integer_tensor(DType::I32, {6}, starts);
  const Tensor w = random_tensor({5 * 40, 33}, 1), b = random_tensor({5 * 40}, 2);
  const Tensor x = random_tensor({1200, 1, 33}, 3), dy = random_tensor({1200, 1, 40}, 4);
  expect_as_interpreted({OpKind::ExpertLinear, {x, w, b, to}}, 1e-5, 1e-13);
  expect_as_interpreted({OpKind::ExpertLinearDx, {dy, w, to}}, 1e-5, 1e-13);
  expect_as_interpreted({OpKind::ExpertLinearDw, {dy, x, to}}, 1e-4, 1e-12);
  expect_as_interpreted({OpKind::ExpertColumnSum, {dy, to}}, 1e-5, 1e-13);
}

/// A row's product is the same to the bit whoever else is there.
TEST(ExpertProducts, RowsDoNotDependOnEachOther) {
  const Tensor w = random_tensor({3 * 33, 300}, 1), b = random_tensor({3 * 33}, 2),
               x = random_tensor({40, 1, 300}, 3);
  OpCase all{OpKind::ExpertLinear, {x, w, b, integer_tensor(DType::I32, {4}, {0, 3, 3, 40})}};
  for (const DType real : {DType::F32, DType::F64}) {
    all.real = real;
    for (const std::string& level : runnable_levels()) {
      const Tensor together = run_compiled(all, level)[0];
      for (const int64_t row : {0, 2, 3, 21, 39}) {
        OpCase one = all;
        one.operands[0] = {DType::F64, {1, 1, 300}, {x.row(row), x.row(row) + 300}};
        one.operands[3] = integer_tensor(
            DType::I32, {4}, row < 3 ? std::vector<double>{0, 1, 1, 1} : std::vector<double>{0, 0, 0, 1});
        const Tensor alone = run_compiled(one, level)[0];
        EXPECT_EQ(alone.data, std::vector<double>(together.row(row), together.row(row) + 33))
            << level << " row " << row;
      }
    }
  }
}

TEST(Balance, InTheLoss) {
  const Tensor sum(DType::F64, {}, {7}), count(DType::F64, {}, {3}), one(DType::F64, {}, {1}),
      zero(DType::F64, {}, {0});
  EXPECT_EQ(run_compiled({OpKind::AddBalance, {sum, count, Tensor(DType::F64, {}, {0.5}), one}},
                         runnable_levels().front())[0][0],
            11.5);
  EXPECT_EQ(run_compiled({OpKind::BalanceScale, {count, zero}}, runnable_levels().front())[0][0], 3);
  EXPECT_EQ(run_compiled({OpKind::BalanceScale, {count, one}}, runnable_levels().front())[0][0], 1);
  EXPECT_EQ(run_compiled({OpKind::BalanceScale, {zero, one}}, runnable_levels().front())[0][0], 0);
}

}  // namespace
}  // namespace tfc::test
