// Drawing from logits: cuts, ties, what cannot be drawn from, independence of rows.
#include "runtime/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "fake_models.h"

namespace tc::test {
namespace {

class SamplingTest : public ::testing::Test {
 protected:
  SamplingTest() {
    desc_ = decoder();
    settings_.size = sizeof settings_;
    settings_.temperature = 1;
    settings_.top_p = 1;
    message_.clear();
  }
  tc_status draw(const std::vector<float>& logits, Draw which = {1, 0, 0}) {
    desc_.out_width = static_cast<int64_t>(logits.size());
    std::vector<double> values(logits.size()), weights(logits.size());
    std::vector<int32_t> order(logits.size());
    return sample(desc_, logits.data(), settings_, which, {values.data(), weights.data(), order.data()},
                  token_, message_);
  }
  int32_t drawn(const std::vector<float>& logits, Draw which = {1, 0, 0}) {
    EXPECT_EQ(draw(logits, which), TC_OK) << message_.text;
    return token_;
  }
  /// How often each id comes, over positions.
  std::vector<int> histogram(const std::vector<float>& logits, int draws) {
    std::vector<int> counts(logits.size());
    for (int position = 0; position < draws; ++position)
      ++counts[static_cast<size_t>(drawn(logits, {1, 0, position}))];
    return counts;
  }

  ModelDesc desc_;
  tc_sampling settings_{};
  Message message_;
  int32_t token_ = -1;
};

TEST_F(SamplingTest, GreedyTakesTheLowestIdOfATie) {
  for (float* zero : {&settings_.temperature, &settings_.top_p}) {
    const float saved = *zero;
    *zero = 0;
    EXPECT_EQ(drawn({1, 4, 2, 4, 4}), 1);
    EXPECT_EQ(drawn({-std::numeric_limits<float>::infinity(), -7}), 1);
    *zero = saved;
  }
}

TEST_F(SamplingTest, FollowsTheProbabilities) {
  const std::vector<int> counts = histogram({std::log(1.0f), std::log(2.0f), std::log(5.0f)}, 8000);
  EXPECT_NEAR(counts[0], 1000, 120);
  EXPECT_NEAR(counts[1], 2000, 150);
  EXPECT_NEAR(counts[2], 5000, 200);
}

TEST_F(SamplingTest, TemperatureComesFirst) {
  settings_.temperature = 0.5;  // squares the odds
  const std::vector<int> counts = histogram({std::log(1.0f), std::log(3.0f)}, 5000);
  EXPECT_NEAR(counts[0], 500, 90);
  settings_.temperature = 1e-40f;
  EXPECT_EQ(drawn({1, 1.0001f, 0}), 1);
}

TEST_F(SamplingTest, TopKKeepsTheBestAndBreaksTiesByLowestId) {
  settings_.top_k = 2;
  const std::vector<int> counts = histogram({3, 5, 3, 3, -1}, 500);
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[2] + counts[3] + counts[4], 0);
  settings_.top_k = 1;
  EXPECT_EQ(histogram({3, 5, 5, 3, -1}, 100)[1], 100);
  settings_.top_k = 5;  // V: off
  EXPECT_GT(histogram({0, 0, 0, 0, 0}, 500)[4], 0);
}

TEST_F(SamplingTest, TopPKeepsTheTokenThatCrosses) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.4f)};
  settings_.top_p = 0.45f;  // the first is enough
  EXPECT_EQ(histogram(logits, 200)[1], 200);
  settings_.top_p = 0.6f;  // the second crosses
  std::vector<int> counts = histogram(logits, 900);
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(counts[2], 400, 60);
  settings_.top_p = 1e-6f;
  EXPECT_EQ(histogram(logits, 50)[1], 50) << "at least one";
}

TEST_F(SamplingTest, TopPCutsWhatTopKLeft) {
  settings_.top_k = 2;     // 0.5 and 0.3 become 5/8 and 3/8
  settings_.top_p = 0.6f;  // of all, 0.6 would need both
  EXPECT_EQ(histogram({std::log(0.5f), std::log(0.3f), std::log(0.2f)}, 200)[0], 200);
}

TEST_F(SamplingTest, RowsAndPositionsDrawIndependently) {
  const std::vector<float> logits(64, 0.0f);
  std::set<int32_t> by_row, by_position, by_seed;
  for (int i = 0; i < 40; ++i) {
    by_row.insert(drawn(logits, {1, i, 0}));
    by_position.insert(drawn(logits, {1, 0, i}));
    by_seed.insert(drawn(logits, {static_cast<uint64_t>(i), 0, 0}));
    EXPECT_EQ(drawn(logits, {5, 3, i}), drawn(logits, {5, 3, i}));
  }
  EXPECT_GT(by_row.size(), 15u);
  EXPECT_GT(by_position.size(), 15u);
  EXPECT_GT(by_seed.size(), 15u);
}

TEST_F(SamplingTest, WhatCannotBeDrawnFrom) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float temperature : {0.0f, 1.0f}) {
    settings_.temperature = temperature;
    EXPECT_EQ(draw({0, std::nanf(""), 1}), TC_E_STATE);
    EXPECT_STREQ(message_.text, "the logit of token 1 in row 0 is NaN: nothing can be drawn");
    EXPECT_EQ(draw({0, 1, infinity}, {1, 4, 0}), TC_E_STATE);
    EXPECT_STREQ(message_.text, "the logit of token 2 in row 4 is +inf: nothing can be drawn");
    EXPECT_EQ(draw({-infinity, -infinity}), TC_E_STATE);
    EXPECT_STREQ(message_.text, "no logit of row 0 is finite: nothing can be drawn");
    EXPECT_EQ(drawn({-infinity, 0, -infinity}), 1);
  }
}

}  // namespace
}  // namespace tc::test
