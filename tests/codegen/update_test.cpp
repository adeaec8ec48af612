#include <gtest/gtest.h>

#include <cmath>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;
using ir::Tensor;

Tensor scalar(double value) { return {DType::F64, {}, {value}}; }

TEST(Update, SumOfSquaresOverSeveralChunks) {
  for (int64_t n : {1, 15, 33, 16384, 16385, 50000}) {
    expect_as_interpreted({OpKind::SumSquares, {random_tensor({n}, 1)}, {}}, 1e-13, 1e-13);
  }
}

TEST(Update, ClippingScalesOnlyWhatIsTooLong) {
  for (double clip : {0.0, 0.5, 1000.0}) {
    expect_as_interpreted({OpKind::ClipScale, {scalar(50.0), scalar(4.0), scalar(clip)}, {}}, 1e-15, 1e-15);
  }
}

/// Parameters of many sizes, so that their borders lie inside chunks, on them and across.
ir::Module module_of(const std::vector<int64_t>& sizes, size_t frozen) {
  ir::Module module;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ir::Parameter parameter;
    parameter.name = "p" + std::to_string(i);
    parameter.shape = {sizes[i]};
    parameter.frozen = i == frozen;
    module.parameters.push_back(parameter);
  }
  ir::lay_out_parameters(module);
  return module;
}

OpCase adamw_case(const std::vector<int64_t>& sizes, double step, size_t frozen = 1000) {
  OpCase c{OpKind::AdamW, {}, {}};
  c.module = module_of(sizes, frozen);
  const int64_t n = c.module.parameter_block(), count = static_cast<int64_t>(sizes.size());
  c.operands = {random_tensor({n}, 1),
                random_tensor({n}, 2),
                random_tensor({n}, 3),
                random_tensor({n}, 4, 0, 1),
                scalar(0.37),
                {DType::F64, {8}, {0.01, 0.9, 0.999, 1e-8, 0.1, step, 0, 0}},
                random_tensor({count}, 5, 0.5, 1.5),
                Tensor(DType::F64, {count})};
  for (int64_t i = 0; i < count; ++i) c.operands[7][i] = i % 2;
  return c;
}

/// The interpreter leaves padding and frozen parameters alone, gradients too.
void expect_update(const OpCase& c, DType real, const std::string& level, double tolerance) {
  const auto wanted = run_interpreted(c);
  const auto found = run_compiled(c, level), backwards = run_compiled(c, level, TaskOrder::Backward);
  for (const ir::Parameter& parameter : c.module.parameters) {
    for (int64_t e = parameter.offset; e < parameter.offset + parameter.elements(); ++e) {
      for (size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(found[i][e], backwards[i][e]);
        if (parameter.frozen) {
          const double before = c.operands[i == 0 ? 0 : i == 1 ? 2 : i == 2 ? 3 : 1][e];
          ASSERT_EQ(found[i][e],
                    real == DType::F32 ? static_cast<double>(static_cast<float>(before)) : before);
        } else {
          ASSERT_NEAR(found[i][e], wanted[i][e], tolerance)
              << parameter.name << " result " << i << " " << level;
        }
      }
    }
  }
}

TEST(Update, AdamWAsTorchOverParameterBorders) {
  const std::vector<int64_t> sizes = {5, 16, 33, 40000, 1, 17, 16384 - 5, 31, 50000};
  for (double step : {1.0, 7.0, 100000.0}) {
    OpCase c = adamw_case(sizes, step, 3);
    for (const std::string& level : runnable_levels()) {
      c.real = DType::F32;
      expect_update(c, c.real, level, 2e-6);
      c.real = DType::F64;
      expect_update(c, c.real, level, 1e-12);
    }
  }
}

TEST(Update, PaddingStaysZero) {
  OpCase c = adamw_case({5, 17}, 1);
  for (size_t i = 0; i < 4; ++i) {
    for (int64_t e : {5, 10, 15, 33, 47}) c.operands[i][e] = 0;
  }
  c.operands[5][3] = 0;  // eps: 0 / 0 would be NaN
  for (const std::string& level : runnable_levels()) {
    const auto found = run_compiled(c, level);
    for (size_t i = 0; i < 4; ++i) {
      for (int64_t e : {5, 10, 15, 33, 47}) EXPECT_EQ(found[i][e], 0);
    }
  }
}

}  // namespace
}  // namespace tfc::test
