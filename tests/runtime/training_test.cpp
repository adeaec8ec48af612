// Gradients, the divisor, the update, and what stays as it was when something fails.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "fake_models.h"

namespace tc::test {
namespace {

class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest() : f_(decoder(), options_of(2)) {
    batch_ = batch_of(2, 2);
    batch_.tokens = tokens_;
    batch_.targets = heads_;
  }
  tc_state state() const {
    tc_state s{};
    s.size = sizeof s;
    EXPECT_EQ(tc_rt_get_state(f_.model, &s), TC_OK);
    return s;
  }
  float bias_gradient(int id) const { return f_.gradients()[16 + id]; }

  const int32_t tokens_[4] = {1, 2, 3, 4}, targets_[4] = {5, 5, 6, -100};  // three count
  const void* heads_[1] = {targets_};
  tc_batch batch_;
  Fixture f_;
};

TEST_F(TrainingTest, BackwardClearsAndLeavesGradientsOfTheMean) {
  double mean = 0, loss = 0;
  ASSERT_EQ(tc_rt_loss(f_.session, &batch_, &loss), TC_OK);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(tc_rt_backward(f_.session, &batch_, &mean), TC_OK) << f_.message();
    EXPECT_EQ(mean, loss);
    EXPECT_FLOAT_EQ(bias_gradient(5), -2.0f / 3);
    EXPECT_FLOAT_EQ(bias_gradient(6), -1.0f / 3);
    EXPECT_FLOAT_EQ(f_.gradients()[1], -2 * 6.0f / 16 / 3);
  }
  EXPECT_EQ(state().divisor, 1.0);
  EXPECT_EQ(state().complete, 1);
  EXPECT_EQ(state().call, 2u);
}

TEST_F(TrainingTest, AccumulateAddsSumsAndCounts) {
  double sum = 0, count = 0;
  ASSERT_EQ(tc_rt_accumulate(f_.session, &batch_, &sum, &count), TC_OK);
  EXPECT_EQ(count, 3.0);
  ASSERT_EQ(tc_rt_accumulate(f_.session, &batch_, nullptr, nullptr), TC_OK);
  EXPECT_EQ(state().divisor, 6.0);
  EXPECT_FLOAT_EQ(bias_gradient(5), -4.0f);
  double norm = 0;
  const tc_adamw settings = adamw_of(0.5);
  const float before = f_.parameters()[21];
  double squares = 0;
  for (int i = 0; i < kBlock; ++i) squares += std::pow(double{f_.gradients()[i]}, 2);
  ASSERT_EQ(tc_rt_step(f_.session, &settings, &norm), TC_OK) << f_.message();
  EXPECT_NEAR(norm, std::sqrt(squares) / 6, 1e-12);
  EXPECT_FLOAT_EQ(f_.parameters()[21], before + 0.5f * 4 / 6);
  EXPECT_EQ(bias_gradient(5), 0.0f);
  EXPECT_EQ(state().divisor, 0.0);
  EXPECT_EQ(state().step_count, 1u);
}

TEST_F(TrainingTest, AccumulateAfterBackwardIsAStateUntilStepOrZeroGrad) {
  ASSERT_EQ(tc_rt_backward(f_.session, &batch_, nullptr), TC_OK);
  const std::vector<float> before = f_.everything();
  EXPECT_EQ(tc_rt_accumulate(f_.session, &batch_, nullptr, nullptr), TC_E_STATE);
  EXPECT_STREQ(f_.message(),
               "gradients are complete after backward or vjp: step or zero_grad before accumulate");
  EXPECT_EQ(f_.everything(), before);
  ASSERT_EQ(tc_rt_zero_grad(f_.session), TC_OK);
  EXPECT_EQ(bias_gradient(5), 0.0f);
  EXPECT_EQ(tc_rt_accumulate(f_.session, &batch_, nullptr, nullptr), TC_OK);
  ASSERT_EQ(tc_rt_backward(f_.session, &batch_, nullptr), TC_OK);
  const tc_adamw settings = adamw_of(0.1);
  ASSERT_EQ(tc_rt_step(f_.session, &settings, nullptr), TC_OK);
  EXPECT_EQ(tc_rt_accumulate(f_.session, &batch_, nullptr, nullptr), TC_OK);
}

TEST_F(TrainingTest, DivisorZeroDoesNothingAtAll) {
  tc_adamw settings = adamw_of(0.1);
  settings.weight_decay = 0.5;
  double norm = 7;
  const std::vector<float> fresh = f_.everything();
  ASSERT_EQ(tc_rt_step(f_.session, &settings, &norm), TC_OK);  // nothing was accumulated
  EXPECT_EQ(norm, 0.0);
  EXPECT_EQ(f_.everything(), fresh);
  const int32_t ignored[4] = {-100, -100, -100, -100};
  heads_[0] = ignored;
  double mean = 7;
  ASSERT_EQ(tc_rt_train_step(f_.session, &batch_, &settings, &mean), TC_OK);
  EXPECT_EQ(mean, 0.0);
  EXPECT_EQ(state().step_count, 0u);
  EXPECT_TRUE(std::equal(fresh.begin(), fresh.begin() + kBlock, f_.parameters()));
}

TEST_F(TrainingTest, StepTakesAnotherDivisorScalesDecayAndClip) {
  ASSERT_EQ(tc_rt_backward(f_.session, &batch_, nullptr), TC_OK);
  tc_adamw settings = adamw_of(0.5);
  const double scales[3] = {0, 2, 1};
  const uint8_t decay[3] = {0, 1, 0};
  settings.count = 4;
  settings.lr_scale = scales;
  settings.decay = decay;
  settings.weight_decay = 0.1;
  settings.clip = 1e-3;
  const std::vector<float> p(f_.parameters(), f_.parameters() + kBlock);
  double norm = 0;
  ASSERT_EQ(tc_rt_step(f_.session, &settings, &norm), TC_OK);
  EXPECT_EQ(f_.parameters()[1], p[1]) << "its lr_scale is 0";
  const double g = -2.0 / 3 / 4 * 1e-3 / norm;
  EXPECT_NEAR(f_.parameters()[21], p[21] - 1.0 * g - 1.0 * 0.1 * p[21], 1e-7);
  EXPECT_FLOAT_EQ(f_.parameters()[20], p[20] * 0.9f);
  EXPECT_EQ(f_.parameters()[33], p[33]);
}

TEST_F(TrainingTest, TrainStepIsZeroGradAccumulateStep) {
  const Fixture other(decoder());
  const tc_adamw settings = adamw_of(0.25);
  ASSERT_EQ(tc_rt_backward(f_.session, &batch_, nullptr), TC_OK);  // what train_step clears
  double mean = 0, sum = 0, count = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(tc_rt_train_step(f_.session, &batch_, &settings, &mean), TC_OK);
    ASSERT_EQ(tc_rt_zero_grad(other.session), TC_OK);
    ASSERT_EQ(tc_rt_accumulate(other.session, &batch_, &sum, &count), TC_OK);
    ASSERT_EQ(tc_rt_step(other.session, &settings, nullptr), TC_OK);
    EXPECT_EQ(mean, sum / count);
  }
  EXPECT_TRUE(std::equal(f_.parameters(), f_.parameters() + kBlock, other.parameters()));
  EXPECT_EQ(state().step_count, 3u);
  EXPECT_EQ(static_cast<float*>(tc_rt_block(f_.model, TC_BLOCK_MOMENT2))[0], 1.0f + 2 + 3)
      << "step counts from 1";
}

TEST_F(TrainingTest, HyperParametersAreChecked) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const double bad_scales[3] = {1, nan, 1};
  struct {
    double tc_adamw::*member;
    double value;
    const char* message;
  } const cases[] = {
      {&tc_adamw::lr, -1, "lr is -1, expected a finite number of at least 0"},
      {&tc_adamw::lr, nan, "lr is nan, expected a finite number of at least 0"},
      {&tc_adamw::beta1, 1, "beta1 is 1, expected at least 0 and less than 1"},
      {&tc_adamw::beta2, -0.1, "beta2 is -0.1, expected at least 0 and less than 1"},
      {&tc_adamw::eps, infinity, "eps is inf, expected a finite number of at least 0"},
      {&tc_adamw::weight_decay, -2, "weight_decay is -2, expected a finite number of at least 0"},
      {&tc_adamw::clip, -1, "clip is -1, expected a finite number of at least 0"},
      {&tc_adamw::count, nan, "count is nan, expected a finite number of at least 0"}};
  ASSERT_EQ(tc_rt_accumulate(f_.session, &batch_, nullptr, nullptr), TC_OK);
  const std::vector<float> before = f_.everything();
  for (const auto& bad : cases) {
    tc_adamw settings = adamw_of(0.1);
    settings.*bad.member = bad.value;
    EXPECT_EQ(tc_rt_step(f_.session, &settings, nullptr), TC_E_ARGUMENT) << bad.message;
    EXPECT_STREQ(f_.message(), bad.message);
    EXPECT_EQ(tc_rt_train_step(f_.session, &batch_, &settings, nullptr), TC_E_ARGUMENT) << bad.message;
  }
  tc_adamw settings = adamw_of(0.1);
  settings.lr_scale = bad_scales;
  EXPECT_EQ(tc_rt_step(f_.session, &settings, nullptr), TC_E_ARGUMENT);
  EXPECT_STREQ(f_.message(), "lr_scale[1] (bias) is nan, expected a finite number of at least 0");
  EXPECT_EQ(tc_rt_step(f_.session, nullptr, nullptr), TC_E_ARGUMENT);
  EXPECT_EQ(f_.everything(), before);
}

TEST_F(TrainingTest, StateIsReadableAndWritable) {
  tc_state s = state();
  s.seed = 9;
  s.call = 8;
  s.step_count = 100;
  s.divisor = 2.5;
  ASSERT_EQ(tc_rt_set_state(f_.model, &s), TC_OK);
  EXPECT_EQ(state().seed, 9u);
  EXPECT_EQ(state().step_count, 100u);
  EXPECT_EQ(state().divisor, 2.5);
  s.divisor = -1;
  EXPECT_EQ(tc_rt_set_state(f_.model, &s), TC_E_ARGUMENT);
  EXPECT_STREQ(tc_rt_model_message(f_.model), "state.divisor is -1, expected a finite number of at least 0");
  tc_state small{};
  small.size = offsetof(tc_state, step_count);
  ASSERT_EQ(tc_rt_get_state(f_.model, &small), TC_OK);
  EXPECT_EQ(small.call, 8u);
  EXPECT_EQ(small.step_count, 0u) << "beyond the caller's size";
}

TEST(Cancelled, BackwardLeavesClearedGradientsAndTheUpdateIsNotBegun) {
  struct Hook {
    int left = 1000;
    static int ask(void* user) { return static_cast<Hook*>(user)->left-- <= 0; }
  } hook;
  tc_options options = options_of(1);
  options.cancelled = Hook::ask;
  options.user = &hook;
  const Fixture f(decoder(), options);
  const int32_t tokens[4] = {1, 2, 3, 4};
  const void* heads[1] = {tokens};
  tc_batch batch = batch_of(2, 2);
  batch.tokens = tokens;
  batch.targets = heads;
  const std::vector<float> parameters(f.parameters(), f.parameters() + kBlock);
  hook.left = 3;  // after the first row's gradients
  EXPECT_EQ(tc_rt_accumulate(f.session, &batch, nullptr, nullptr), TC_E_CANCELLED);
  for (int i = 0; i < kBlock; ++i) EXPECT_EQ(f.gradients()[i], 0.0f);
  hook.left = 1000;
  ASSERT_EQ(tc_rt_accumulate(f.session, &batch, nullptr, nullptr), TC_OK);
  hook.left = 0;
  const tc_adamw settings = adamw_of(0.1);
  EXPECT_EQ(tc_rt_step(f.session, &settings, nullptr), TC_E_CANCELLED);
  hook.left = 1;  // asked once; not again inside the update
  EXPECT_TRUE(std::equal(parameters.begin(), parameters.end(), f.parameters()));
  EXPECT_EQ(tc_rt_step(f.session, &settings, nullptr), TC_OK);
  EXPECT_FALSE(std::equal(parameters.begin(), parameters.end(), f.parameters()));
}

TEST(Writers, OneSessionTrainsAtATime) {
  struct Hook {
    tc_session* other = nullptr;
    tc_status seen = TC_OK;
    std::string message;
    static int ask(void* user) {
      Hook& hook = *static_cast<Hook*>(user);
      if (hook.other) hook.seen = tc_rt_zero_grad(hook.other), hook.message = tc_rt_message(hook.other);
      return 0;
    }
  } hook;
  tc_options options = options_of(1);
  options.cancelled = Hook::ask;
  options.user = &hook;
  const Fixture f(decoder(), options);
  tc_session* other = nullptr;
  ASSERT_EQ(tc_rt_session_create(f.model, nullptr, &other), TC_OK);
  hook.other = other;
  const int32_t tokens[1] = {1};
  const void* heads[1] = {tokens};
  tc_batch batch = batch_of(1, 1);
  batch.tokens = tokens;
  batch.targets = heads;
  EXPECT_EQ(tc_rt_backward(f.session, &batch, nullptr), TC_OK);
  EXPECT_EQ(hook.seen, TC_E_STATE);
  EXPECT_EQ(hook.message, "another session is training this model: one at a time");
  tc_rt_session_destroy(other);
}

TEST(Vjp, GradientsOfInputsAndParameters) {
  const Fixture f(hidden());
  double* w = static_cast<double*>(tc_rt_parameter(f.model, "emb"));
  w[0] = 2, w[1] = 3, w[2] = 4;
  const double x[6] = {1, 2, 3, 4, 5, 6}, gy[6] = {1, 1, 1, 10, 10, 10};
  double gx[6] = {};
  tc_batch batch = batch_of(1, 2);
  batch.x = x;
  const void* upstream[1] = {gy};
  void* wanted[1] = {gx};
  for (int round = 0; round < 2; ++round) {  // cleared before
    ASSERT_EQ(tc_rt_vjp(f.session, &batch, round, upstream, wanted), TC_OK) << f.message();
    const double* g = static_cast<const double*>(tc_rt_gradient(f.model, "emb"));
    EXPECT_EQ(g[0], 41.0);
    EXPECT_EQ(g[2], 63.0);
    EXPECT_EQ(gx[0], 2.0);
    EXPECT_EQ(gx[5], 40.0);
  }
  EXPECT_EQ(tc_rt_vjp(f.session, &batch, 0, upstream, nullptr), TC_OK) << "no input's gradient wanted";
  tc_state state{};
  state.size = sizeof state;
  tc_rt_get_state(f.model, &state);
  EXPECT_EQ(state.call, 1u) << "only training calls drop";
  EXPECT_EQ(state.complete, 1);
  const void* nothing[1] = {nullptr};
  EXPECT_EQ(tc_rt_vjp(f.session, &batch, 0, nothing, nullptr), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "grad_outputs[0] is NULL");
}

}  // namespace
}  // namespace tc::test
