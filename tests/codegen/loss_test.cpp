// Losses of rows of logits, their gradients and what surrounds them, against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "jit.h"

namespace tfc::test {
namespace {

constexpr int64_t kIgnore = -100;
const float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A chunk of logits with targets; every third row is ignored or masked, by turns, and holds NaN.
template <class T>
struct Chunk {
  int64_t rows, width, stride;
  std::vector<T> logits;
  std::vector<int32_t> targets;
  std::vector<uint8_t> mask;

  Chunk(int64_t r, int64_t v, double spread) : rows(r), width(v), stride(v + 3) {
    std::mt19937 random(static_cast<unsigned>(r * 131 + v));
    std::normal_distribution<double> normal(0, spread);
    logits.resize(static_cast<size_t>(rows * stride));
    for (T& x : logits) x = static_cast<T>(normal(random));
    for (int64_t i = 0; i < rows; ++i) {
      targets.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(v)));
      mask.push_back(1);
      if (i % 3 != 2) continue;
      for (int64_t j = 0; j < width; ++j) logits[static_cast<size_t>(i * stride + j)] = kNaN;
      if (i % 2) {
        targets.back() = kIgnore;
      } else {
        mask.back() = 0, targets.back() = 1 << 30;  // no index at all
      }
    }
  }
  bool counts(int64_t row) const { return row % 3 != 2; }
  int64_t count() const {
    int64_t n = 0;
    for (int64_t i = 0; i < rows; ++i) n += counts(i);
    return n;
  }
  double logit(int64_t row, int64_t v) const { return logits[static_cast<size_t>(row * stride + v)]; }
  double log_sum(int64_t row) const {
    double greatest = logit(row, 0), sum = 0;
    for (int64_t v = 0; v < width; ++v) greatest = std::max(greatest, logit(row, v));
    for (int64_t v = 0; v < width; ++v) sum += std::exp(logit(row, v) - greatest);
    return greatest + std::log(sum);
  }
  double loss(int64_t row, double smoothing) const {
    if (!counts(row)) return 0;
    const double lse = log_sum(row);
    double uniform = 0;
    for (int64_t v = 0; v < width; ++v) uniform += lse - logit(row, v);
    return (1 - smoothing) * (lse - logit(row, targets[static_cast<size_t>(row)])) +
           smoothing / double(width) * uniform;
  }
  double gradient(int64_t row, int64_t v, double smoothing) const {
    if (!counts(row)) return 0;
    return std::exp(logit(row, v) - log_sum(row)) - smoothing / double(width) -
           (v == targets[static_cast<size_t>(row)] ? 1 - smoothing : 0.0);
  }
};

template <class T>
std::string real_name() {
  return sizeof(T) == 4 ? "f32" : "f64";
}

class LossTest : public testing::TestWithParam<std::string> {
 protected:
  template <class T>
  void check(double smoothing, double spread, double mean) {
    const codegen::Target target = target_of(GetParam());
    const JitKernel losses(
        {"row_loss", {{"f", real_name<T>()}, {"gradient", true}, {"smoothing", smoothing}}}, target);
    const JitKernel loss_only(
        {"row_loss", {{"f", real_name<T>()}, {"gradient", false}, {"smoothing", smoothing}}}, target);
    for (int64_t rows : {1, 3, 17}) {
      for (int64_t width : {1, 2, 15, 16, 17, 33, 100}) {
        SCOPED_TRACE("rows " + std::to_string(rows) + " width " + std::to_string(width) + " " +
                     real_name<T>());
        Chunk<T> chunk(rows, width, spread);
        const Chunk<T> before = chunk;
        std::vector<double> row_losses(static_cast<size_t>(rows), -1), without(static_cast<size_t>(rows), -1);
        double count = double(chunk.count());
        const int64_t rows_per_task = 2, tasks = (rows + 1) / 2;
        loss_only.run({chunk.logits, without, chunk.targets, chunk.mask, rows, width, chunk.stride, kIgnore,
                       rows_per_task},
                      tasks, 0, TaskOrder::Backward);
        losses.run({chunk.logits, row_losses, chunk.targets, chunk.mask, rows, width, chunk.stride, kIgnore,
                    rows_per_task, &count, &mean},
                   tasks, 0, TaskOrder::Backward);
        EXPECT_EQ(row_losses, without);
        const double scale = mean != 0 ? 1 / count : 1, tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
        for (int64_t i = 0; i < rows; ++i) {
          ASSERT_NEAR(row_losses[static_cast<size_t>(i)], before.loss(i, smoothing),
                      tolerance * 10 * (1 + spread))
              << i;
          for (int64_t v = 0; v < width; ++v) {
            ASSERT_NEAR(chunk.logit(i, v), scale * before.gradient(i, v, smoothing), tolerance * (1 + spread))
                << i << ", " << v;
          }
        }
      }
    }
  }
};

/// Rows of outputs with a number to reach, and a weight, each; every third row weighs nothing or is masked, and holds
/// NaN.
template <class T>
struct Numbers {
  int64_t rows, width, stride;
  std::vector<T> outputs, targets, weights;
  std::vector<uint8_t> mask;

  Numbers(int64_t r, int64_t n, double spread) : rows(r), width(n), stride(n + 3) {
    std::mt19937 random(static_cast<unsigned>(r * 131 + n));
    std::normal_distribution<double> normal(0, spread);
    std::uniform_real_distribution<double> uniform(0, 1);
    outputs.resize(static_cast<size_t>(rows * stride));
    for (T& x : outputs) x = static_cast<T>(normal(random));
    for (int64_t i = 0; i < rows * width; ++i) targets.push_back(static_cast<T>(i % 4 ? uniform(random) : i % 8 / 4));
    for (int64_t i = 0; i < rows; ++i) {
      weights.push_back(static_cast<T>(0.25 + uniform(random)));
      mask.push_back(1);
      if (i % 3 != 2) continue;
      for (int64_t j = 0; j < width; ++j) outputs[static_cast<size_t>(i * stride + j)] = kNaN;
      targets[static_cast<size_t>(i * width)] = T(kNaN);
      mask.back() = i % 2 == 1;
      weights.back() = mask.back() ? T(0) : T(kNaN);
    }
  }
  bool counts(int64_t row) const { return row % 3 != 2; }
  double weight(int64_t row) const { return weights[static_cast<size_t>(row)]; }
  double count() const {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += counts(i) ? weight(i) : 0;
    return sum;
  }
  double x(int64_t row, int64_t n) const { return outputs[static_cast<size_t>(row * stride + n)]; }
  double target(int64_t row, int64_t n) const { return targets[static_cast<size_t>(row * width + n)]; }
  double loss(int64_t row, bool squared) const {
    if (!counts(row)) return 0;
    double sum = 0;
    for (int64_t n = 0; n < width; ++n) {
      const double value = x(row, n), difference = value - target(row, n);
      const double softplus = std::max(value, 0.0) + std::log1p(std::exp(-std::fabs(value)));
      sum += squared ? difference * difference : softplus - target(row, n) * value;
    }
    return weight(row) * sum / double(width);
  }
  double gradient(int64_t row, int64_t n, bool squared) const {
    if (!counts(row)) return 0;
    const double p = 1 / (1 + std::exp(-x(row, n)));
    return weight(row) / double(width) * (squared ? 2 * (x(row, n) - target(row, n)) : p - target(row, n));
  }
};

template <class T>
void check_numbers(const std::string& level, bool squared, double spread, double mean) {
  const codegen::Target target = target_of(level);
  ir::Attributes attributes{{"f", real_name<T>()},
                            {"kind", std::string(squared ? "mse" : "binary_cross_entropy")},
                            {"weighted", true},
                            {"gradient", true},
                            {"share", 0.5}};
  const JitKernel losses({"row_loss", attributes}, target);
  attributes.set("gradient", false);
  const JitKernel loss_only({"row_loss", attributes}, target);
  attributes = {{"f", real_name<T>()}, {"kind", attributes.text("kind")}, {"weighted", true}};
  const JitKernel counting({"loss_count", attributes}, target), counted({"counted_rows", attributes}, target);
  for (int64_t rows : {1, 3, 17}) {
    for (int64_t width : {1, 2, 15, 16, 17, 33}) {
      SCOPED_TRACE("rows " + std::to_string(rows) + " width " + std::to_string(width) + " " + real_name<T>());
      Numbers<T> chunk(rows, width, spread);
      const Numbers<T> before = chunk;
      const int64_t tasks = (rows + 1) / 2;
      double count = -1;
      counting.run({&count, chunk.targets, chunk.mask, rows, kIgnore, chunk.weights}, 1, 0);
      ASSERT_NEAR(count, before.count(), 1e-12);
      std::vector<uint8_t> which(static_cast<size_t>(rows), 9);
      counted.run({which, chunk.targets, chunk.mask, rows, kIgnore, 2, chunk.weights}, tasks, 0);
      std::vector<double> row_losses(static_cast<size_t>(rows), -1), without(static_cast<size_t>(rows), -1);
      loss_only.run({chunk.outputs, without, chunk.targets, chunk.mask, rows, width, chunk.stride, kIgnore, 2,
                     chunk.weights},
                    tasks, 0, TaskOrder::Backward);
      losses.run({chunk.outputs, row_losses, chunk.targets, chunk.mask, rows, width, chunk.stride, kIgnore, 2,
                  chunk.weights, &count, &mean},
                 tasks, 0, TaskOrder::Backward);
      EXPECT_EQ(row_losses, without);
      const double scale = 0.5 * (mean != 0 ? 1 / count : 1), tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_NEAR(row_losses[static_cast<size_t>(i)], before.loss(i, squared), tolerance * 10 * (1 + spread * spread)) << i;
        ASSERT_EQ(which[static_cast<size_t>(i)], before.counts(i) ? 1 : 0);
        for (int64_t n = 0; n < width; ++n) {
          ASSERT_NEAR(chunk.x(i, n), scale * before.gradient(i, n, squared), tolerance * (1 + spread)) << i << ", " << n;
        }
      }
    }
  }
}

TEST_P(LossTest, BinaryCrossEntropy) {
  check_numbers<float>(GetParam(), false, 1, 0);
  check_numbers<double>(GetParam(), false, 30, 1);
}

TEST_P(LossTest, SquaredError) {
  check_numbers<float>(GetParam(), true, 1, 1);
  check_numbers<double>(GetParam(), true, 3, 0);
}

/// To the last digits where the model is sure and right: log(1 + exp(-x)) of a large x.
TEST_P(LossTest, SmallBinaryCrossEntropies) {
  const JitKernel losses({"row_loss",
                          {{"f", std::string("f32")}, {"kind", std::string("binary_cross_entropy")}, {"gradient", false}}},
                         target_of(GetParam()));
  std::vector<float> outputs = {20, -20, 80, -80}, targets = {1, 0, 1, 0};
  std::vector<double> row_losses(4, 5);
  losses.run({outputs, row_losses, targets, nullptr, 4, 1, 1, kIgnore, 4}, 1, 0);
  for (int i = 0; i < 4; ++i) {
    const double expected = std::exp(i < 2 ? -20.0 : -80.0);
    EXPECT_NEAR(row_losses[static_cast<size_t>(i)] / expected, 1, i < 2 ? 1e-6 : 2e-6) << i;
  }
}

TEST_P(LossTest, LossesAndGradients) {
  check<float>(0, 1, 0);
  check<double>(0, 1, 1);
}

TEST_P(LossTest, LabelSmoothing) {
  check<float>(0.1, 1, 1);
  check<double>(0.25, 3, 0);
}

TEST_P(LossTest, LargeLogits) {
  check<float>(0, 60, 0);
  check<double>(0, 400, 0);
}

TEST_P(LossTest, NothingCounts) {
  const JitKernel losses(
      {"row_loss", {{"f", std::string("f32")}, {"gradient", true}, {"smoothing", 0.0}}},
      target_of(GetParam()));
  std::vector<float> logits(20, kNaN);
  std::vector<int32_t> targets(2, kIgnore);
  std::vector<double> row_losses(2, 5);
  double count = 0, mean = 1;
  losses.run({logits, row_losses, targets, nullptr, 2, 10, 10, kIgnore, 1, &count, &mean}, 2, 0);
  EXPECT_EQ(row_losses, std::vector<double>(2, 0.0));
  EXPECT_EQ(logits, std::vector<float>(20, 0.0f));
}

TEST_P(LossTest, NaNStaysNaN) {
  const JitKernel losses(
      {"row_loss", {{"f", std::string("f32")}, {"gradient", true}, {"smoothing", 0.0}}},
      target_of(GetParam()));
  std::vector<float> logits(40, 0.5f);
  logits[18] = kNaN;
  std::vector<int32_t> targets(2, 3);
  std::vector<double> row_losses(2, 5);
  double count = 2, mean = 0;
  losses.run({logits, row_losses, targets, nullptr, 2, 20, 20, kIgnore, 1, &count, &mean}, 2, 0);
  EXPECT_TRUE(std::isnan(row_losses[0]));
  EXPECT_NEAR(row_losses[1], std::log(20.0), 1e-6);
}

TEST_P(LossTest, Logprobs) {
  const JitKernel logprob({"softmax_logprob", {{"f", std::string("f32")}}}, target_of(GetParam()));
  Chunk<float> chunk(17, 37, 2);
  std::vector<float> out(17, 9);
  logprob.run(
      {chunk.logits, out, chunk.targets, chunk.mask, chunk.rows, chunk.width, chunk.stride, kIgnore, 4}, 5, 0,
      TaskOrder::Backward);
  for (int64_t i = 0; i < 17; ++i) EXPECT_NEAR(out[static_cast<size_t>(i)], -chunk.loss(i, 0), 1e-5) << i;
}

TEST_P(LossTest, CountsSumsAndCountedRows) {
  const codegen::Target target = target_of(GetParam());
  Chunk<float> chunk(17, 37, 2);
  double count = -1;
  JitKernel({"loss_count", {{"f", std::string("f32")}}}, target)
      .run({&count, chunk.targets, chunk.mask, chunk.rows, kIgnore}, 1, 0);
  EXPECT_EQ(count, double(chunk.count()));

  std::vector<uint8_t> rows(17, 9);
  JitKernel({"counted_rows", {{"f", std::string("f32")}}}, target)
      .run({rows, chunk.targets, chunk.mask, chunk.rows, kIgnore, 4}, 5, 0);
  for (int64_t i = 0; i < 17; ++i) ASSERT_EQ(rows[static_cast<size_t>(i)], chunk.counts(i) ? 1 : 0);

  std::vector<double> losses = {0.5, 1.25, 2, 0, 1};
  double sum = -1;
  JitKernel({"loss_sum", {{"f", std::string("f32")}}}, target).run({&sum, losses, 5}, 1, 0);
  EXPECT_EQ(sum, 4.75);
}

INSTANTIATE_TEST_SUITE_P(Levels, LossTest, testing::ValuesIn(runnable_levels()),
                         [](const auto& info) { return "v" + info.param.substr(8); });

}  // namespace
}  // namespace tfc::test
