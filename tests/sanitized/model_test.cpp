// A whole model under the sanitizers: its kernels as the compiler emits them, linked with a run time that the
// sanitizers see. Training with several threads, two sessions of one model in two threads, decoding, and a
// session that two threads want at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/exports.h"

namespace {

constexpr int64_t kB = 6, kT = 33, kVocab = 67;

const tc_api& api() {
  const tc_api* table = tc_rt_api(0);
  if (!table) abort();
  return *table;
}

struct Tokens {
  explicit Tokens(uint32_t seed) {
    for (int64_t i = 0; i < kB * kT; ++i) {
      seed = seed * 1664525 + 1013904223;
      tokens.push_back(static_cast<int32_t>(seed >> 16) % static_cast<int32_t>(kVocab));
      targets.push_back((tokens.back() * 7 + 1) % static_cast<int32_t>(kVocab));
      mask.push_back(i % kT < kT - i / kT);  // rows end in padding of different lengths
    }
    target_pointer = targets.data();
    batch.size = sizeof batch;
    batch.B = kB;
    batch.T = kT;
    batch.tokens = tokens.data();
    batch.mask = mask.data();
    batch.targets = &target_pointer;
  }
  std::vector<int32_t> tokens, targets;
  std::vector<uint8_t> mask;
  const void* target_pointer = nullptr;
  tc_batch batch{};
};

class Model {
 public:
  explicit Model(int threads) {
    tc_options options{};
    options.size = sizeof options;
    options.seed = 3;
    options.threads = threads;
    EXPECT_EQ(api().model_create(&options, &model), TC_OK);
    session = new_session(threads);
  }
  ~Model() {
    api().session_destroy(session);
    api().model_destroy(model);
  }
  tc_session* new_session(int threads) {
    tc_options options{};
    options.size = sizeof options;
    options.threads = threads;
    tc_session* made = nullptr;
    EXPECT_EQ(api().session_create(model, &options, &made), TC_OK);
    return made;
  }
  tc_model* model = nullptr;
  tc_session* session = nullptr;
};

std::vector<float> forward(tc_session* session, const tc_batch& batch) {
  std::vector<float> logits(static_cast<size_t>(batch.B * batch.T * kVocab));
  void* outputs[] = {logits.data()};
  EXPECT_EQ(api().forward(session, &batch, 0, outputs), TC_OK) << api().message(session);
  return logits;
}

tc_adamw settings() {
  tc_adamw adamw{};
  adamw.size = sizeof adamw;
  adamw.lr = 3e-3;
  adamw.beta1 = 0.9;
  adamw.beta2 = 0.95;
  adamw.eps = 1e-8;
  adamw.clip = 1;
  return adamw;
}

double train(Model& model, int steps) {
  const Tokens tokens(5);
  const tc_adamw adamw = settings();
  double mean = 0;
  for (int step = 0; step < steps; ++step) {
    EXPECT_EQ(api().train_step(model.session, &tokens.batch, &adamw, &mean), TC_OK)
        << api().message(model.session);
  }
  return mean;
}

TEST(Sanitized, TrainsTheSameWithEveryNumberOfThreads) {
  Model one(1), four(4);
  const double first = train(one, 1);
  const double last = train(one, 11);
  EXPECT_LT(last, 0.8 * first);
  EXPECT_EQ(train(four, 12), last);
}

TEST(Sanitized, TwoSessionsOfOneModelInTwoThreads) {
  Model model(2);
  train(model, 2);
  const Tokens left(1), right(2);
  const std::vector<float> expected_left = forward(model.session, left.batch);
  const std::vector<float> expected_right = forward(model.session, right.batch);
  const auto run = [&](const Tokens& tokens, const std::vector<float>& expected, int* wrong) {
    tc_session* session = model.new_session(2);
    for (int i = 0; i < 20; ++i) *wrong += forward(session, tokens.batch) != expected;
    api().session_destroy(session);
  };
  int wrong_left = 0, wrong_right = 0;
  std::thread other([&] { run(left, expected_left, &wrong_left); });
  run(right, expected_right, &wrong_right);
  other.join();
  EXPECT_EQ(wrong_left, 0);
  EXPECT_EQ(wrong_right, 0);
}

TEST(Sanitized, TwoModelsTrainInTwoThreads) {
  Model left(2), right(2);
  double left_loss = 0;
  std::thread other([&] { left_loss = train(left, 4); });
  const double right_loss = train(right, 4);
  other.join();
  EXPECT_EQ(left_loss, right_loss);
}

TEST(Sanitized, DecodesTokenByToken) {
  Model model(3);
  Tokens tokens(9);
  tokens.batch.mask = nullptr;
  tokens.batch.targets = nullptr;
  const std::vector<float> expected = forward(model.session, tokens.batch);
  ASSERT_EQ(api().cache_reset(model.session, kB, kT, nullptr), TC_OK);
  for (int64_t t = 0; t < kT; ++t) {
    std::vector<int32_t> column;
    for (int64_t b = 0; b < kB; ++b) column.push_back(tokens.tokens[static_cast<size_t>(b * kT + t)]);
    tc_batch next{};
    next.size = sizeof next;
    next.B = kB;
    next.T = 1;
    next.tokens = column.data();
    std::vector<float> logits(kB * kVocab);
    ASSERT_EQ(api().decode(model.session, &next, logits.data()), TC_OK);
    for (int64_t b = 0; b < kB; ++b) {
      EXPECT_EQ(std::memcmp(logits.data() + b * kVocab, expected.data() + (b * kT + t) * kVocab, kVocab * 4),
                0);
    }
  }
}

TEST(Sanitized, SessionsThatCannotBeMadeInTwoThreads) {
  Model model(2);
  const auto run = [&] {
    for (int i = 0; i < 50; ++i) {
      tc_options options{};
      options.size = sizeof options;
      options.threads = -1;
      tc_session* none = nullptr;
      EXPECT_EQ(api().session_create(model.model, &options, &none), TC_E_ARGUMENT);
      EXPECT_EQ(none, nullptr);
    }
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_STREQ(api().model_message(model.model), "options.threads is -1, expected at least 0 (0: all cores)");
}

/// A load has the model to itself; whoever comes meanwhile is told so, and nobody sees half of it.
TEST(Sanitized, LoadsAndSavesBesideRunningSessions) {
  Model model(2), other_weights(2);
  train(model, 2);
  const Tokens tokens(1);
  const std::vector<float> first = forward(other_weights.session, tokens.batch);
  const std::vector<float> second = forward(model.session, tokens.batch);
  char folder[] = "/tmp/weights-XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  const std::string path = std::string(folder) + "/w", copy = std::string(folder) + "/copy";
  ASSERT_EQ(api().save(other_weights.model, path.c_str(), 1), TC_OK) << api().model_message(model.model);
  int loaded = 0;
  std::thread loading([&] {
    for (int i = 0; i < 200 && loaded == 0; ++i) {
      const tc_status status = api().load(model.model, path.c_str(), 1);
      EXPECT_TRUE(status == TC_OK || status == TC_E_STATE);
      loaded += status == TC_OK;
      EXPECT_EQ(api().save(model.model, copy.c_str(), 0), TC_OK);
    }
  });
  std::vector<float> logits(first.size());
  void* outputs[] = {logits.data()};
  for (int i = 0; i < 50; ++i) {
    const tc_status status = api().forward(model.session, &tokens.batch, 0, outputs);
    EXPECT_TRUE(status == TC_E_STATE || (status == TC_OK && (logits == first || logits == second)));
  }
  loading.join();
  EXPECT_TRUE(loaded == 0 || forward(model.session, tokens.batch) == first);
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_EQ(std::remove(copy.c_str()), 0);
  EXPECT_EQ(std::remove(folder), 0) << "nothing else is left in it";
}

/// Two threads want one session: each call runs whole or says that the session is busy.
TEST(Sanitized, ASessionTakesOneThreadAtATime) {
  Model model(2);
  const Tokens tokens(1);
  const std::vector<float> expected = forward(model.session, tokens.batch);
  std::atomic<int> done{0}, busy{0};
  const auto run = [&] {
    std::vector<float> logits(expected.size());
    void* outputs[] = {logits.data()};
    for (int i = 0; i < 50; ++i) {
      const tc_status status = api().forward(model.session, &tokens.batch, 0, outputs);
      if (status == TC_OK) {
        EXPECT_TRUE(logits == expected);
        ++done;
      } else {
        EXPECT_EQ(status, TC_E_STATE);
        ++busy;
      }
    }
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(done + busy, 100);
  EXPECT_GE(done, 1);
}

}  // namespace
