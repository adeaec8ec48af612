// Several heads through the C interface: what the library tells of them, what it refuses, and what their losses add up
// to over several calls.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "models/descriptions.h"
#include "models/session.h"

namespace tfc::models {
namespace {

constexpr int64_t kB = 4, kT = 6;
enum Number { kNext, kSecond, kScore, kTags, kStates, kSilent, kHeads };  // of "all_heads"

class HeadsOfAModel : public testing::Test {
 protected:
  HeadsOfAModel()
      : compiled_(compile(case_named("all_heads").text, {})),
        session_(compiled_),
        call_(random_call(session_, kB, kT, 0, 5, false)) {}

  /// With other targets and weights, one pointer for each head.
  void expect_refused(const std::string& what, const std::function<void(const void**, const void**)>& change) {
    const void *targets[kHeads], *weights[kHeads];
    for (int head = 0; head < kHeads; ++head) {
      targets[head] = call_.get().targets[head];
      weights[head] = call_.get().weights[head];
    }
    change(targets, weights);
    tc_batch batch = call_.get();
    batch.targets = targets;
    batch.weights = weights;
    const Results before = session_.state();
    double number = 0;
    EXPECT_EQ(session_.api.loss(session_.session, &batch, &number), TC_E_ARGUMENT) << what;
    EXPECT_EQ(session_.message(), what);
    EXPECT_EQ(session_.api.backward(session_.session, &batch, &number), TC_E_ARGUMENT) << what;
    EXPECT_EQ(session_.message(), what);
    EXPECT_EQ(differences(session_.state(), before), "");
  }

  template <class T>
  std::vector<T> copy(const void* array, int64_t elements, int64_t at, T value) {
    const T* begin = static_cast<const T*>(array);
    std::vector<T> values(begin, begin + elements);
    values[static_cast<size_t>(at)] = value;
    return values;
  }

  Compiled compiled_;
  Session session_;
  Call call_;
};

TEST_F(HeadsOfAModel, AreDescribed) {
  ASSERT_EQ(session_.info.heads_count, kHeads);
  const struct {
    const char* name;
    int32_t type, loss, per_token;
    int64_t width;
    double weight;
  } expected[] = {{"next", TC_HEAD_LM, TC_LOSS_CROSS_ENTROPY, 1, 17, 0.5},
                  {"second", TC_HEAD_TOKEN_CLASSIFIER, TC_LOSS_CROSS_ENTROPY, 1, 3, 1},
                  {"score", TC_HEAD_REGRESSION, TC_LOSS_MSE, 0, 2, 2},
                  {"tags", TC_HEAD_CLASSIFIER, TC_LOSS_BINARY_CROSS_ENTROPY, 0, 5, 1},
                  {"states", TC_HEAD_NONE, TC_LOSS_NONE, 1, 12, 1},
                  {"silent", TC_HEAD_CLASSIFIER, TC_LOSS_NONE, 0, 4, 1}};
  for (int32_t i = 0; i < kHeads; ++i) {
    tc_head head{};
    head.size = sizeof head;
    ASSERT_EQ(session_.api.head_info(i, &head), TC_OK);
    EXPECT_STREQ(head.name, expected[i].name);
    EXPECT_EQ(head.type, expected[i].type) << i;
    EXPECT_EQ(head.loss, expected[i].loss) << i;
    EXPECT_EQ(head.per_token, expected[i].per_token) << i;
    EXPECT_EQ(head.out_width, expected[i].width) << i;
    EXPECT_EQ(head.loss_weight, expected[i].weight) << i;
  }
  tc_head head{};
  head.size = sizeof head;
  EXPECT_EQ(session_.api.head_info(kHeads, &head), TC_E_ARGUMENT);
  EXPECT_EQ(session_.info.head, TC_HEAD_LM);  // what decode and generation are about
  EXPECT_EQ(session_.info.out_width, 17);
}

TEST(HeadsOfAPair, SayWhoseTokensTheirRowsAre) {
  const Compiled compiled = compile(case_named("heads_on_the_encoder").text, {});
  std::vector<std::pair<int32_t, int32_t>> rows;  // per_token, source
  for (int32_t i = 0; i < 4; ++i) {
    tc_head head{};
    head.size = sizeof head;
    ASSERT_EQ(compiled.api().head_info(i, &head), TC_OK);
    rows.emplace_back(head.per_token, head.source);
  }
  EXPECT_EQ(rows, (std::vector<std::pair<int32_t, int32_t>>{{1, 1}, {1, 0}, {0, 1}, {1, 1}}));
}

TEST_F(HeadsOfAModel, AreRefusedByName) {
  const void* const* targets = call_.get().targets;
  const auto id = copy<int32_t>(targets[kSecond], kB * kT, 8, 3);
  expect_refused("targets.second[1,2] is 3, expected 0 to 2, or 1 to ignore it",
                 [&](const void** t, const void**) { t[kSecond] = id.data(); });
  const auto yes = copy<float>(targets[kTags], kB * 5, 7, 1.5f);
  expect_refused("targets.tags[1,2] is 1.5, expected 0 to 1", [&](const void** t, const void**) { t[kTags] = yes.data(); });
  const auto nan = copy<float>(targets[kTags], kB * 5, 0, std::nanf(""));
  expect_refused("targets.tags[0,0] is nan, expected 0 to 1", [&](const void** t, const void**) { t[kTags] = nan.data(); });
  expect_refused("targets.score is missing", [](const void** t, const void**) { t[kScore] = nullptr; });
  expect_refused("targets.silent is given, but the head has no loss",
                 [&](const void** t, const void**) { t[kSilent] = t[kNext]; });
  const void* const* weights = call_.get().weights;
  const auto below = copy<float>(weights[kScore], kB, 3, -0.5f);
  expect_refused("weights.score[3] is -0.5, expected a finite number of at least 0",
                 [&](const void**, const void** w) { w[kScore] = below.data(); });
  const auto infinite = copy<float>(weights[kNext], kB * kT, 1, INFINITY);
  expect_refused("weights.next[0,1] is inf, expected a finite number of at least 0",
                 [&](const void**, const void** w) { w[kNext] = infinite.data(); });
  expect_refused("targets.next is not aligned to its elements of 4 bytes", [](const void** t, const void**) {
    t[kNext] = static_cast<const char*>(t[kNext]) + 1;
  });

  tc_batch batch = call_.get();
  batch.targets = nullptr;
  double number = 0;
  EXPECT_EQ(session_.api.loss(session_.session, &batch, &number), TC_E_ARGUMENT);
  EXPECT_EQ(session_.message(), "targets is missing");
  std::vector<float> out(1000);
  EXPECT_EQ(session_.api.logprobs(session_.session, &call_.get(), out.data()), TC_E_STATE);
  EXPECT_NE(session_.message().find("head_logprobs"), std::string::npos);
  void* outputs[kHeads] = {out.data(), out.data(), nullptr, out.data(), out.data(), out.data()};
  EXPECT_EQ(session_.api.forward(session_.session, &call_.get(), 0, outputs), TC_E_ARGUMENT);
  EXPECT_EQ(session_.message(), "outputs.score is NULL");
}

/// Targets that are not read need not be right: those that weigh nothing, and ids that are ignored.
TEST_F(HeadsOfAModel, ReadNothingThatDoesNotCount) {
  const double before = session_.loss(call_);
  auto weights = copy<float>(call_.get().weights[kTags], kB, 1, 0.0f);
  const auto targets = copy<float>(call_.get().targets[kTags], kB * 5, 6, std::nanf(""));
  const void *all_targets[kHeads], *all_weights[kHeads];
  std::copy_n(call_.get().targets, kHeads, all_targets);
  std::copy_n(call_.get().weights, kHeads, all_weights);
  all_weights[kTags] = weights.data();
  tc_batch batch = call_.get();
  batch.targets = all_targets;
  batch.weights = all_weights;
  const double without = session_.loss(batch);
  all_targets[kTags] = targets.data();
  EXPECT_EQ(session_.loss(batch), without);
  EXPECT_NE(without, before);
  all_weights[kTags] = nullptr;  // each weighs 1
  all_targets[kTags] = call_.get().targets[kTags];
  const double unweighted = session_.loss(batch);
  std::fill(weights.begin(), weights.end(), 1.0f);
  all_weights[kTags] = weights.data();
  EXPECT_EQ(session_.loss(batch), unweighted);
}

/// Each head has a divisor of its own in every call, so a call adds its mean loss and counts 1.
TEST_F(HeadsOfAModel, AccumulateTheirMeans) {
  const double mean = session_.backward(call_);
  const std::vector<double> once = numbers(session_, session_.block(TC_BLOCK_GRADIENTS));
  session_.check(session_.api.zero_grad(session_.session));
  for (int i = 0; i < 2; ++i) {
    double sum = 0, count = 0;
    session_.check(session_.api.accumulate(session_.session, &call_.get(), &sum, &count));
    EXPECT_EQ(sum, mean);
    EXPECT_EQ(count, 1);
  }
  const std::vector<double> twice = numbers(session_, session_.block(TC_BLOCK_GRADIENTS));
  for (size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(twice[i], 2 * once[i], 1e-4) << i;
  tc_state state{};
  state.size = sizeof state;
  session_.check(session_.api.get_state(session_.model, &state));
  EXPECT_EQ(state.divisor, 2);

  double sums[kHeads], counts[kHeads], whole = 0;
  session_.check(session_.api.losses(session_.session, sums, counts));
  for (const auto& [head, share] : {std::pair{kNext, 0.5}, {kSecond, 1.0}, {kScore, 2.0}, {kTags, 1.0}})
    whole += share * (sums[head] / counts[head]);
  EXPECT_NEAR(whole, mean, 1e-12);
  EXPECT_EQ(counts[kStates], 0);
}

/// With one loss, sums and counts add up exactly: its weight is a factor on both ends.
TEST(OneLoss, KeepsItsCount) {
  const Compiled compiled = compile(case_named("lm_weighted").text, {});
  Session session(compiled);
  const Call call = random_call(session, 3, 9, 0);
  double sum = 0, count = 0, expected = 0;
  const float* weights = static_cast<const float*>(call.get().weights[0]);
  const auto* targets = static_cast<const int32_t*>(call.get().targets[0]);
  for (int64_t i = 0; i < 27; ++i) {
    const bool real = !call.get().mask || call.get().mask[i];
    if (real && targets[i] != session.info.ignore_index) expected += weights[i];
  }
  session.check(session.api.accumulate(session.session, &call.get(), &sum, &count));
  EXPECT_EQ(count, expected);
  EXPECT_NEAR(sum / count, session.loss(call), 1e-12);
}

}  // namespace
}  // namespace tfc::models
