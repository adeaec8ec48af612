// Forward entries, what is checked before them, and who may call when.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <cfenv>
#include <functional>
#include <thread>

#include "fake_models.h"

namespace tc::test {
namespace {

constexpr int32_t kTokens[6] = {1, 2, 3, 4, 5, 6};

/// logits of the fake decoder for one row, computed here.
std::vector<float> expected_logits(const float* p, const std::vector<int32_t>& row) {
  std::vector<float> out;
  float h = 0;
  for (int32_t id : row) {
    h += p[id];
    for (int v = 0; v < kVocab; ++v) out.push_back(h * static_cast<float>(v + 1) / 16 + p[16 + v]);
  }
  return out;
}

std::vector<float> run_forward(const Fixture& f, const tc_batch& batch, int last = 0) {
  std::vector<float> out(static_cast<size_t>(batch.B * (last ? 1 : batch.T) * kVocab), -99.0f);
  void* outputs[1] = {out.data()};
  EXPECT_EQ(tc_rt_forward(f.session, &batch, last, outputs), TC_OK) << f.message();
  return out;
}

TEST(Forward, MasksAndLengths) {
  const Fixture f(decoder());
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  const std::vector<float> all = run_forward(f, batch);
  std::vector<float> expected = expected_logits(f.parameters(), {1, 2, 3});
  const std::vector<float> second = expected_logits(f.parameters(), {4, 5, 6});
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(all, expected);

  const uint8_t mask[6] = {1, 1, 1, 1, 0, 0};
  batch.mask = mask;
  const std::vector<float> masked = run_forward(f, batch);
  EXPECT_TRUE(std::equal(masked.begin(), masked.begin() + 4 * kVocab, expected.begin()));
  for (size_t i = 4 * kVocab; i < masked.size(); ++i) EXPECT_EQ(masked[i], 0.0f);

  batch.mask = nullptr;
  const int32_t lengths[2] = {3, 1};
  batch.lengths = lengths;
  EXPECT_EQ(run_forward(f, batch), masked);
  const std::vector<float> last = run_forward(f, batch, 1);
  EXPECT_TRUE(std::equal(last.begin(), last.begin() + kVocab, expected.begin() + 2 * kVocab));
  EXPECT_TRUE(std::equal(last.begin() + kVocab, last.end(), expected.begin() + 3 * kVocab));
}

TEST(Forward, VaryingShapesOverOneSession) {
  const Fixture f(decoder(), options_of(2));
  for (int round = 0; round < 50; ++round) {
    const int64_t T = 1 + (round * 5) % 6, B = 1 + round % 3;
    std::vector<int32_t> tokens(static_cast<size_t>(B * T), 3);
    tc_batch batch = batch_of(B, T);
    batch.tokens = tokens.data();
    const std::vector<float> out = run_forward(f, batch);
    const std::vector<float> row =
        expected_logits(f.parameters(), std::vector<int32_t>(static_cast<size_t>(T), 3));
    ASSERT_TRUE(std::equal(row.begin(), row.end(), out.end() - static_cast<int64_t>(row.size())));
  }
}

TEST(Forward, WhatStandsAtMaskedPositionsIsNotRead) {
  const Fixture f(decoder());
  const int32_t wild[3] = {1, -7, 1 << 30}, lengths[1] = {1};
  tc_batch batch = batch_of(1, 3);
  batch.tokens = wild;
  batch.lengths = lengths;
  EXPECT_EQ(run_forward(f, batch)[0], expected_logits(f.parameters(), {1})[0]);
}

TEST(Loss, CountsTargetsAndIgnoresOthers) {
  const Fixture f(decoder());
  const int32_t targets[6] = {2, -100, 4, 5, 6, 7}, lengths[2] = {3, 1};
  const void* heads[1] = {targets};
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  batch.targets = heads;
  batch.lengths = lengths;
  const std::vector<float> a = expected_logits(f.parameters(), {1, 2, 3}),
                           b = expected_logits(f.parameters(), {4});
  double mean = -1;
  ASSERT_EQ(tc_rt_loss(f.session, &batch, &mean), TC_OK) << f.message();
  EXPECT_DOUBLE_EQ(mean, -(double{a[2]} + double{a[2 * kVocab + 4]} + double{b[5]}) / 3);
  float logprobs[6];
  ASSERT_EQ(tc_rt_logprobs(f.session, &batch, logprobs), TC_OK);
  EXPECT_EQ(logprobs[0], a[2]);
  EXPECT_EQ(logprobs[1], 0.0f);
  EXPECT_EQ(logprobs[4], 0.0f);
  const int32_t ignored[6] = {-100, -100, -100, -100, -100, -100};
  heads[0] = ignored;
  ASSERT_EQ(tc_rt_loss(f.session, &batch, &mean), TC_OK);
  EXPECT_EQ(mean, 0.0);
}

// -- wrong arguments
// ---------------------------------------------------------------------------------------------------------

struct Bad {
  const char* message;
  std::function<void(tc_batch&)> spoil;
};

TEST(Validation, NamesTheArgumentAndChangesNothing) {
  static const int32_t bad_id[6] = {1, 2, 3, 4, 16, 6}, negative[6] = {1, -1, 3, 4, 5, 6};
  static const int32_t bad_target[6] = {1, 2, 3, 4, 5, 16}, bad_length[2] = {3, 4};
  static const uint8_t bad_mask[6] = {1, 1, 1, 1, 2, 0}, good_mask[6] = {1, 1, 1, 1, 1, 1};
  static const void* const bad_heads[1] = {bad_target};
  static const void* const no_heads[1] = {nullptr};
  static const float floats[6] = {};
  const Bad cases[] = {
      {"batch.size is 0, expected 176", [](tc_batch& b) { b.size = 0; }},
      {"B is 0, expected at least 1", [](tc_batch& b) { b.B = 0; }},
      {"T is 0, expected at least 1", [](tc_batch& b) { b.T = 0; }},
      {"T is -3, expected at least 1", [](tc_batch& b) { b.T = -3; }},
      {"T is 9, expected at most 8 (max_seq)", [](tc_batch& b) { b.T = 9; }},
      {"B is 2147483648, expected less than 2^31", [](tc_batch& b) { b.B = int64_t{1} << 31; }},
      {"tokens is missing", [](tc_batch& b) { b.tokens = nullptr; }},
      {"tokens[1,1] is 16, expected 0 to 15", [](tc_batch& b) { b.tokens = bad_id; }},
      {"tokens[0,1] is -1, expected 0 to 15", [](tc_batch& b) { b.tokens = negative; }},
      {"tokens is not aligned to its elements of 4 bytes",
       [](tc_batch& b) {
         b.tokens = reinterpret_cast<const int32_t*>(reinterpret_cast<const char*>(kTokens) + 1);
       }},
      {"targets is missing", [](tc_batch& b) { b.targets = nullptr; }},
      {"targets[0] is missing", [](tc_batch& b) { b.targets = no_heads; }},
      {"targets[0][1,2] is 16, expected 0 to 15, or -100 to ignore it",
       [](tc_batch& b) { b.targets = bad_heads; }},
      {"mask[1,1] is 2, expected 0 or 1", [](tc_batch& b) { b.mask = bad_mask; }},
      {"lengths[1] is 4, expected 0 to 3", [](tc_batch& b) { b.lengths = bad_length; }},
      {"mask and lengths are both given, expected one",
       [](tc_batch& b) { b.mask = good_mask, b.lengths = bad_length; }},
      {"x is given, but the model fake does not declare it", [](tc_batch& b) { b.x = floats; }},
      {"src is given, but the model fake does not declare it", [](tc_batch& b) { b.src = kTokens; }},
      {"src_mask is given, but the model fake does not declare it",
       [](tc_batch& b) { b.src_mask = good_mask; }},
      {"types is given, but the model fake does not declare it", [](tc_batch& b) { b.types = kTokens; }},
      {"weights is given, but the model fake does not declare it",
       [](tc_batch& b) { b.weights = bad_heads; }},
      {"prefix is given, but the model fake does not declare it", [](tc_batch& b) { b.prefix = kTokens; }},
  };
  const Fixture f(decoder());
  static const int32_t targets[6] = {1, 2, 3, 4, 5, 6};
  const void* heads[1] = {targets};
  tc_batch good = batch_of(2, 3);
  good.tokens = kTokens;
  good.targets = heads;
  double mean;
  ASSERT_EQ(tc_rt_accumulate(f.session, &good, nullptr, nullptr), TC_OK) << f.message();
  const std::vector<float> before = f.everything();
  const tc_adamw settings = adamw_of(0.1);
  for (const Bad& bad : cases) {
    tc_batch batch = good;
    bad.spoil(batch);
    EXPECT_EQ(tc_rt_loss(f.session, &batch, &mean), TC_E_ARGUMENT) << bad.message;
    EXPECT_STREQ(f.message(), bad.message);
    EXPECT_EQ(tc_rt_accumulate(f.session, &batch, nullptr, nullptr), TC_E_ARGUMENT) << bad.message;
    EXPECT_EQ(tc_rt_backward(f.session, &batch, nullptr), TC_E_ARGUMENT) << bad.message;
    EXPECT_EQ(tc_rt_train_step(f.session, &batch, &settings, nullptr), TC_E_ARGUMENT) << bad.message;
    EXPECT_EQ(f.everything(), before) << bad.message;
  }
  EXPECT_EQ(tc_rt_forward(f.session, &good, 0, nullptr), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "outputs is NULL");
  void* nothing[1] = {nullptr};
  EXPECT_EQ(tc_rt_forward(f.session, &good, 0, nothing), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "outputs[0] is NULL");
  EXPECT_EQ(tc_rt_forward(nullptr, &good, 0, nothing), TC_E_ARGUMENT);
}

TEST(Validation, FixedShapes) {
  ModelDesc desc = decoder();
  desc.fixed_batch = 2;
  desc.fixed_seq = 4;
  const Fixture f(desc);
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  float out[6 * kVocab];
  void* outputs[1] = {out};
  EXPECT_EQ(tc_rt_forward(f.session, &batch, 0, outputs), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "T is 3, but the model was compiled for 4");
}

TEST(Validation, WhatTheModelLacksIsAState) {
  const Fixture f(hidden());
  tc_batch batch = batch_of(1, 1);
  double mean;
  EXPECT_EQ(tc_rt_loss(f.session, &batch, &mean), TC_E_STATE);
  EXPECT_STREQ(f.message(), "the model hidden has no loss, or was compiled without it");
  EXPECT_EQ(tc_rt_cache_reset(f.session, 1, 4, nullptr), TC_E_STATE);
}

// -- who may call
// ------------------------------------------------------------------------------------------------------------

/// A parallel_for that calls back into the session, as a second thread would.
struct Intruder {
  tc_session* session = nullptr;
  tc_status seen = TC_OK;
  std::string message;
};

void intrude(void* user, int64_t tasks, void (*body)(void*, int64_t), void* arg) {
  Intruder& intruder = *static_cast<Intruder*>(user);
  for (int64_t task = 0; task < tasks; ++task) body(arg, task);
  if (!intruder.session || intruder.seen != TC_OK) return;
  intruder.seen = tc_rt_zero_grad(intruder.session);
  intruder.message = tc_rt_message(intruder.session);
}

TEST(Session, EnteredTwiceIsBusy) {
  Intruder intruder;
  tc_options options = options_of(1);
  options.parallel_for = intrude;
  options.user = &intruder;
  const Fixture f(decoder(), options);
  intruder.session = f.session;
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  run_forward(f, batch);
  EXPECT_EQ(intruder.seen, TC_E_STATE);
  EXPECT_EQ(intruder.message, "the session is busy: one thread at a time");
  EXPECT_EQ(tc_rt_zero_grad(f.session), TC_OK);
}

TEST(Session, TwoOnOneModelInTwoThreads) {
  const Fixture f(decoder(), options_of(2));
  tc_session* other = nullptr;
  ASSERT_EQ(tc_rt_session_create(f.model, nullptr, &other), TC_OK);
  const std::vector<float> expected = expected_logits(f.parameters(), {1, 2, 3});
  std::atomic<int> wrong{0};
  const auto work = [&](tc_session* session) {
    for (int round = 0; round < 100; ++round) {
      tc_batch batch = batch_of(2, 3);
      batch.tokens = kTokens;
      float out[6 * kVocab];
      void* outputs[1] = {out};
      if (tc_rt_forward(session, &batch, 0, outputs) != TC_OK ||
          !std::equal(expected.begin(), expected.end(), out))
        ++wrong;
    }
  };
  std::thread a(work, f.session), b(work, other);
  a.join();
  b.join();
  EXPECT_EQ(wrong, 0);
  tc_rt_session_destroy(other);
}

TEST(Session, CancelledBetweenKernels) {
  struct Hook {
    int left = 1;
    static int ask(void* user) { return static_cast<Hook*>(user)->left-- <= 0; }
  } hook;
  tc_options options = options_of(1);
  options.cancelled = Hook::ask;
  options.user = &hook;
  const Fixture f(decoder(), options);
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  float out[6 * kVocab];
  void* outputs[1] = {out};
  EXPECT_EQ(tc_rt_forward(f.session, &batch, 0, outputs), TC_E_CANCELLED);
  EXPECT_STREQ(f.message(), "cancelled");
}

TEST(Session, TheHostsFloatingPointStateIsTheSameAfterwards) {
  const unsigned host = 0x1f80 | 0x6000 | 0x20;  // round towards zero, inexact already raised
  const Fixture f(decoder());
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  const std::vector<float> expected = run_forward(f, batch);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(host);
  const std::vector<float> out = run_forward(f, batch);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(after, host);
  EXPECT_EQ(out, expected) << "the host's rounding mode must not matter";
}

TEST(Session, DenormalsAreFlushedInside) {
  for (int threads : {1, 3}) {
    const Fixture f(decoder(), options_of(threads));
    std::fill(f.parameters(), f.parameters() + 32, 0.0f);
    f.parameters()[16] = 1e-40f;  // bias of token 0: read as zero, 0 + 0 = 0
    tc_batch batch = batch_of(2, 3);
    batch.tokens = kTokens;
    for (float value : run_forward(f, batch)) EXPECT_EQ(value, 0.0f);
  }
}

TEST(Session, TimesOfRecordsWhereTheyAreWanted) {
  const Fixture f(decoder(), options_of(2));
  tc_batch batch = batch_of(2, 3);
  batch.tokens = kTokens;
  const std::vector<float> plain = run_forward(f, batch);
  const int64_t count = tc_rt_profile(f.session, TC_ENTRY_INFER, nullptr, 0);
  ASSERT_EQ(count, decoder().entries[EntryInfer].record_count);
  EXPECT_EQ(tc_rt_profile(f.session, TC_ENTRY_VJP, nullptr, 0), 0) << "no such entry";
  EXPECT_EQ(tc_rt_profile(f.session, 99, nullptr, 0), 0);
  EXPECT_EQ(tc_rt_profile(nullptr, TC_ENTRY_INFER, nullptr, 0), 0);

  std::vector<tc_record> records(static_cast<size_t>(count), tc_record{nullptr, nullptr, -7, -7});
  EXPECT_EQ(tc_rt_profile(f.session, TC_ENTRY_INFER, records.data(), count), count);
  for (int run = 0; run < 5; ++run) EXPECT_EQ(run_forward(f, batch), plain) << "timing changes no result";
  run_forward(f, batch, 1);  // another entry
  for (const tc_record& record : records) {
    EXPECT_STREQ(record.node, "a node");
    EXPECT_STREQ(record.kernel, "a kernel");
    EXPECT_EQ(record.calls, 5);
    EXPECT_GT(record.nanoseconds, 0);
  }
  EXPECT_EQ(tc_rt_profile(f.session, TC_ENTRY_INFER, nullptr, 0), count);
  run_forward(f, batch);
  EXPECT_EQ(records[0].calls, 5) << "ended";

  tc_record guarded[2] = {{nullptr, nullptr, -7, -7}, {nullptr, nullptr, -7, -7}};
  EXPECT_EQ(tc_rt_profile(f.session, TC_ENTRY_INFER, guarded, 1), count);
  run_forward(f, batch);
  EXPECT_EQ(guarded[0].calls, 1);
  EXPECT_EQ(guarded[1].calls, -7) << "beyond what the caller gave";
}

}  // namespace
}  // namespace tc::test
