#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::OpKind;

const std::vector<int64_t> kWidths = {1, 3, 5, 15, 16, 17, 31, 33, 768};
const ir::Attributes kEps{{"eps", 1e-5}};

TEST(Norm, LayerNormAndItsGradients) {
  for (int64_t D : kWidths) {
    const auto x = random_tensor({2, 35, D}, 1, -2, 3), gamma = random_tensor({D}, 2),
               beta = random_tensor({D}, 3);
    // With D = 1 everything but beta is zero up to rounding, and so is its greatest magnitude.
    OpCase forward{OpKind::LayerNorm, {x, gamma, beta}, kEps};
    expect_as_interpreted(forward, 2e-6, 1e-14);
    expect_as_interpreted({OpKind::LayerNorm, {x, gamma}, kEps}, D == 1 ? 1 : 2e-6, 1e-14);
    if (D == 1) continue;
    const auto y = run_interpreted(forward);
    expect_as_interpreted({OpKind::LayerNormGrad, {random_tensor({2, 35, D}, 4), x, gamma, y[1], y[2]}, {}},
                          5e-6, 1e-13);
  }
}

TEST(Norm, RmsNormAndItsGradients) {
  for (int64_t D : kWidths) {
    const auto x = random_tensor({2, 35, D}, 1, -2, 3), gamma = random_tensor({D}, 2);
    OpCase forward{OpKind::RmsNorm, {x, gamma}, kEps};
    expect_as_interpreted(forward, 2e-6, 1e-14);
    const auto y = run_interpreted(forward);
    expect_as_interpreted({OpKind::RmsNormGrad, {random_tensor({2, 35, D}, 4), x, gamma, y[1]}, {}},
                          D == 1 ? 1e-4 : 5e-6, D == 1 ? 1e-11 : 1e-13);
  }
}

TEST(Norm, GradientsThatNobodyReadsAreNotMade) {
  const auto x = random_tensor({2, 9, 17}, 1), gamma = random_tensor({17}, 2), beta = random_tensor({17}, 3);
  const auto y = run_interpreted({OpKind::LayerNorm, {x, gamma, beta}, kEps});
  OpCase c{OpKind::LayerNormGrad, {random_tensor({2, 9, 17}, 4), x, gamma, y[1], y[2]}, {}};
  for (std::set<uint32_t> unused : {std::set<uint32_t>{0}, {1, 2}, {2}}) {
    c.unused = unused;
    expect_as_interpreted(c, 5e-6, 1e-13);
  }
  OpCase forward{OpKind::LayerNorm, {x, gamma, beta}, kEps};
  forward.unused = {1, 2};
  expect_as_interpreted(forward, 2e-6, 1e-14);
}

TEST(Norm, VarianceDoesNotCancelAtALargeMean) {
  const auto x = random_tensor({1, 4, 64}, 1, 9999, 10001), gamma = random_tensor({64}, 2);
  OpCase c{OpKind::LayerNorm, {x, gamma}, kEps};
  const auto wanted = run_interpreted(c), found = run_compiled(c, "x86-64-v2");
  for (int64_t i = 0; i < wanted[0].elements(); ++i) EXPECT_NEAR(found[0][i], wanted[0][i], 5e-3);
}

TEST(Norm, ARowAloneHasTheBitsOfTheBatch) {
  for (const std::string& level : runnable_levels()) {
    const auto x = random_tensor({1, 70, 33}, 1), gamma = random_tensor({33}, 2);
    const auto all = run_compiled({OpKind::LayerNorm, {x, gamma}, kEps}, level);
    ir::Tensor one({ir::DType::F64, {1, 1, 33}, std::vector<double>(x.row(41), x.row(42))});
    const auto alone = run_compiled({OpKind::LayerNorm, {one, gamma}, kEps}, level);
    EXPECT_EQ(0, std::memcmp(alone[0].data.data(), all[0].row(41), 33 * 8)) << level;
  }
}

}  // namespace
}  // namespace tfc::test
