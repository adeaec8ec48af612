// Element by element, pooling: against the interpreter, at sizes that fill vectors and that do not, as views,
// at every level.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;

const double kInfinity = std::numeric_limits<double>::infinity(),
             kNaN = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::vector<int64_t>> kShapes = {{1, 1, 1},  {2, 3, 5},  {1, 5, 15},
                                                   {3, 1, 17}, {2, 5, 31}, {1, 3, 33}};

TEST(Elementwise, AddMultiplyScaleResidual) {
  for (const auto& shape : kShapes) {
    const auto a = random_tensor(shape, 1), b = random_tensor(shape, 2), c = random_tensor(shape, 3);
    expect_as_interpreted({OpKind::Add, {a, b}, {}}, 1e-7, 1e-15);
    expect_as_interpreted({OpKind::Multiply, {a, b}, {}}, 1e-7, 1e-15);
    expect_as_interpreted({OpKind::Scale, {a}, {{"factor", 0.3}}}, 1e-7, 1e-15);
    expect_as_interpreted({OpKind::Residual, {a, b}, {{"scale", 1.0}}}, 1e-7, 1e-15);
    expect_as_interpreted({OpKind::Residual, {a, b, c}, {{"scale", 0.5}}}, 2e-7, 4e-16);
  }
}

TEST(Elementwise, ManyChunks) {
  const std::vector<int64_t> shape = {3, 1100, 9};
  expect_as_interpreted({OpKind::Add, {random_tensor(shape, 1), random_tensor(shape, 2)}, {}}, 1e-7, 1e-15);
}

TEST(Elementwise, ActivationsAndTheirDerivatives) {
  for (const char* kind : {"relu", "gelu", "gelu_tanh", "silu"}) {
    for (const auto& shape : kShapes) {
      SCOPED_TRACE(kind);
      const auto x = random_tensor(shape, 1, -6, 6), dy = random_tensor(shape, 2);
      expect_as_interpreted({OpKind::Activation, {x}, {{"kind", std::string(kind)}}}, 3e-7, 1e-15);
      expect_as_interpreted({OpKind::ActivationGrad, {dy, x}, {{"kind", std::string(kind)}}}, 1e-6, 2e-15);
    }
  }
}

TEST(Elementwise, KnownActivations) {
  OpCase c{
      OpKind::Activation, {integer_tensor(DType::F64, {3}, {1, -1, 0})}, {{"kind", std::string("gelu")}}};
  const auto y = run_compiled(c, "x86-64-v2")[0];
  EXPECT_NEAR(y[0], 0.841344746, 1e-7);
  EXPECT_NEAR(y[1], -0.158655254, 1e-7);
  EXPECT_EQ(y[2], 0);
}

TEST(Elementwise, ActivationsKeepNaNAndStayFiniteFarOut) {
  for (const char* kind : {"relu", "gelu", "gelu_tanh", "silu"}) {
    for (DType real : {DType::F32, DType::F64}) {
      for (const std::string& level : runnable_levels()) {
        const double far = real == DType::F32 ? 1e38 : 1e300;
        const auto x = integer_tensor(DType::F64, {5}, {kNaN, far, -far, kInfinity, 1});
        const auto dy = integer_tensor(DType::F64, {5}, {1, 1, 1, 1, kNaN});
        OpCase c{OpKind::Activation, {x}, {{"kind", std::string(kind)}}, real};
        const auto y = run_compiled(c, level)[0];
        EXPECT_TRUE(std::isnan(y[0])) << kind;
        EXPECT_NEAR(y[1] / far, 1, 1e-6) << kind;
        EXPECT_EQ(y[2], 0) << kind;
        EXPECT_EQ(y[3], kInfinity) << kind;
        OpCase g{OpKind::ActivationGrad, {dy, x}, {{"kind", std::string(kind)}}, real};
        const auto dx = run_compiled(g, level)[0];
        EXPECT_TRUE(std::isnan(dx[0])) << kind;
        EXPECT_NEAR(dx[1], 1, 1e-6) << kind;
        EXPECT_EQ(dx[2], 0) << kind;
        EXPECT_TRUE(std::isnan(dx[4])) << kind;
      }
    }
  }
}

TEST(Elementwise, ConcatCopiesColumnsSideBySide) {
  expect_as_interpreted(
      {OpKind::Concat,
       {random_tensor({2, 3, 5}, 1), random_tensor({2, 3, 17}, 2), random_tensor({2, 3, 1}, 3)},
       {}},
      0, 0);
}

TEST(Elementwise, MaskedRowsAreZerosWhateverTheyHold) {
  for (const auto& shape : kShapes) {
    auto x = random_tensor(shape, 1);
    std::vector<double> mask;
    for (int64_t r = 0; r < shape[0] * shape[1]; ++r) {
      mask.push_back(r % 3 != 1);
      if (r % 3 == 1) x.row(r)[0] = kNaN;
    }
    expect_as_interpreted({OpKind::MaskRows, {x, integer_tensor(DType::U8, {shape[0], shape[1]}, mask)}, {}},
                          0, 0);
  }
}

TEST(Elementwise, RowsAreAddedWithAndWithoutABatch) {
  for (const auto& shape : kShapes) {
    const auto x = random_tensor(shape, 1);
    expect_as_interpreted({OpKind::AddRows, {x, random_tensor({shape[1], shape[2]}, 2)}, {}}, 1e-7, 1e-15);
    expect_as_interpreted({OpKind::AddRows, {x, random_tensor(shape, 2)}, {}}, 1e-7, 1e-15);
    expect_as_interpreted({OpKind::BatchSum, {x}, {}}, 2e-7, 1e-15);
  }
}

TEST(Pool, EveryKindWithAndWithoutMask) {
  for (const char* kind : {"first", "mean", "last"}) {
    for (int64_t D : {1, 5, 17, 33}) {
      auto x = random_tensor({3, 4, D}, 1);
      const ir::Attributes attributes{{"kind", std::string(kind)}};
      ir::Attributes grad = attributes;
      grad.set("tokens", ir::Dim(4));
      const auto dy = random_tensor({3, D}, 2);
      expect_as_interpreted({OpKind::Pool, {x}, attributes}, 2e-7, 1e-15);
      expect_as_interpreted({OpKind::PoolGrad, {dy}, grad}, 2e-7, 1e-15);
      const auto mask = integer_tensor(DType::U8, {3, 4}, {0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1});
      for (int64_t r : {0, 3, 4, 5, 6, 7, 9, 10}) x.row(r)[D / 2] = kNaN;  // behind the mask
      expect_as_interpreted({OpKind::Pool, {x, mask}, attributes}, 2e-7, 1e-15);
      expect_as_interpreted({OpKind::PoolGrad, {dy, mask}, grad}, 2e-7, 1e-15);
    }
  }
}

TEST(Pool, AnyRealToken) {
  expect_as_interpreted({OpKind::AnyReal, {integer_tensor(DType::U8, {1, 1}, {0})}, {}}, 0, 0);
  for (const int64_t T : {1, 5, 17, 33}) {
    auto mask = integer_tensor(DType::U8, {4, T}, std::vector<double>(static_cast<size_t>(4 * T)));
    mask.row(0)[0] = mask.row(2)[T - 1] = mask.row(3)[T / 2] = 1;
    expect_as_interpreted({OpKind::AnyReal, {mask}, {}}, 0, 0);
  }
}

}  // namespace
}  // namespace tfc::test
