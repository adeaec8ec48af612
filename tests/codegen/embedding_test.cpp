#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::Dim;
using ir::DType;
using ir::OpKind;
using ir::Tensor;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<int64_t> kWidths = {1, 3, 5, 15, 17, 31, 33, 530};

TEST(Embedding, LookUpScaleAndMask) {
  for (int64_t D : kWidths) {
    const auto table = random_tensor({7, D}, 1);
    const auto ids = integer_tensor(DType::I32, {2, 3}, {0, 6, 3, 3, 1, 6});
    expect_as_interpreted({OpKind::Embedding, {ids, table}, {{"scale", 1.0}}}, 0, 0);
    expect_as_interpreted({OpKind::Embedding, {ids, table}, {{"scale", 5.5}}}, 1e-7, 1e-15);
    const auto wild = integer_tensor(DType::I32, {2, 3}, {0, 6, -2000000000, 3, 2000000000, 6});  // not read
    const auto mask = integer_tensor(DType::U8, {2, 3}, {1, 1, 0, 1, 0, 1});
    expect_as_interpreted({OpKind::Embedding, {wild, table, mask}, {{"scale", 2.0}}}, 0, 0);
  }
}

TEST(Embedding, GradientAddsTokensInOrder) {
  for (int64_t D : kWidths) {
    auto dy = random_tensor({2, 3, D}, 1);
    const auto ids = integer_tensor(DType::I32, {2, 3}, {0, 6, 3, 3, 1, 6});
    expect_as_interpreted({OpKind::EmbeddingGrad, {dy, ids}, {{"scale", 1.0}, {"rows", int64_t{9}}}}, 1e-7,
                          1e-15);
    const auto wild = integer_tensor(DType::I32, {2, 3}, {0, 6, -2000000000, 3, 2000000000, 6});
    const auto mask = integer_tensor(DType::U8, {2, 3}, {1, 1, 0, 1, 0, 1});
    dy.row(2)[0] = kNaN;
    expect_as_interpreted({OpKind::EmbeddingGrad, {dy, wild, mask}, {{"scale", 3.0}, {"rows", int64_t{9}}}},
                          1e-7, 1e-15);
  }
}

TEST(Embedding, PositionRowsAndTheirGradient) {
  for (int64_t D : kWidths) {
    const auto table = random_tensor({9, D}, 1);
    expect_as_interpreted({OpKind::PositionRows, {table}, {{"tokens", Dim(5)}}}, 0, 0);
    const auto offsets = integer_tensor(DType::I32, {3}, {0, 2, 7});  // the last runs past the table
    expect_as_interpreted({OpKind::PositionRows, {table, offsets}, {{"tokens", Dim(4)}}}, 0, 0);
    expect_as_interpreted({OpKind::PositionRowsGrad, {random_tensor({5, D}, 2)}, {{"rows", int64_t{9}}}}, 0,
                          0);
  }
}

TEST(Embedding, SinusoidsOfEveryWidth) {
  for (int64_t D : kWidths) {
    expect_as_interpreted({OpKind::Sinusoid, {}, {{"width", D}, {"tokens", Dim(70)}}}, 1e-7, 2e-13);
    OpCase c{
        OpKind::Sinusoid, {integer_tensor(DType::I32, {2}, {3, 100000})}, {{"width", D}, {"tokens", Dim(4)}}};
    c.contiguous = {100};
    expect_as_interpreted(c, 1e-7, 2e-12);
  }
}

TEST(Embedding, AnglesOfGivenPositions) {
  const Tensor positions = integer_tensor(DType::I32, {2, 3}, {0, 70, 3, 100000, 5, 5});
  OpCase c{OpKind::Sinusoid, {positions}, {{"width", int64_t{17}}, {"tokens", Dim(3)}}};
  c.contiguous = {100};
  expect_as_interpreted(c, 1e-7, 2e-12);
  c.op = OpKind::RopeTable;
  c.attributes = {{"width", int64_t{34}}, {"theta", 500000.0}, {"tokens", Dim(3)}};
  expect_as_interpreted(c, 1e-7, 2e-12);
}

TEST(Embedding, RotaryTables) {
  for (int64_t E : {2, 6, 16, 30, 34, 64}) {
    const ir::Attributes attributes{{"width", E}, {"theta", 500000.0}, {"tokens", Dim(37)}};
    expect_as_interpreted({OpKind::RopeTable, {}, attributes}, 1e-7, 2e-13);
    OpCase c{OpKind::RopeTable, {integer_tensor(DType::I32, {2}, {1, 4096})}, attributes};
    c.contiguous = {100};
    expect_as_interpreted(c, 1e-7, 2e-12);
  }
}

TEST(Embedding, RotationsOfBothStylesAndBack) {
  for (int64_t E : {2, 6, 16, 30, 34, 64}) {
    for (const char* style : {"half", "interleaved"}) {
      for (bool inverse : {false, true}) {
        const ir::Attributes attributes{
            {"heads", int64_t{3}}, {"head_dim", E}, {"style", std::string(style)}, {"inverse", inverse}};
        const auto x = random_tensor({2, 5, 3 * E}, 1);
        expect_as_interpreted({OpKind::Rope, {x, random_tensor({5, E}, 2)}, attributes}, 2e-7, 1e-15);
        OpCase own{OpKind::Rope, {x, random_tensor({2, 5, E}, 2)}, attributes};
        own.contiguous = {1};
        expect_as_interpreted(own, 2e-7, 1e-15);
      }
    }
  }
}

}  // namespace
}  // namespace tfc::test
