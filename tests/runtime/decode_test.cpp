// The cache: any split gives the same bits; overruns and misuse; generation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "fake_models.h"

namespace tc::test {
namespace {

tc_cache cache_of(const tc_session* session) {
  tc_cache cache{};
  cache.size = sizeof cache;
  EXPECT_EQ(tc_rt_cache_state(session, &cache), TC_OK);
  return cache;
}

constexpr int32_t kTokens[12] = {1, 5, 9, 2, 7, 3, 15, 0, 4, 4, 11, 6};

TEST(Decode, AnySplitGivesTheForwardsBits) {
  const Fixture f(decoder(), options_of(2));
  tc_batch batch = batch_of(2, 6);
  batch.tokens = kTokens;
  std::vector<float> whole(12 * kVocab);
  void* outputs[1] = {whole.data()};
  ASSERT_EQ(tc_rt_forward(f.session, &batch, 0, outputs), TC_OK);
  for (const std::vector<int64_t>& split : {std::vector<int64_t>{6}, {1, 1, 1, 1, 1, 1}, {2, 3, 1}, {5, 1}}) {
    ASSERT_EQ(tc_rt_cache_reset(f.session, 0, 0, nullptr), TC_OK);
    int64_t done = 0;
    for (int64_t t : split) {
      std::vector<int32_t> next;
      for (int64_t b = 0; b < 2; ++b)
        next.insert(next.end(), kTokens + b * 6 + done, kTokens + b * 6 + done + t);
      tc_batch part = batch_of(2, t);
      part.tokens = next.data();
      std::vector<float> logits(static_cast<size_t>(2 * t * kVocab));
      ASSERT_EQ(tc_rt_decode(f.session, &part, logits.data()), TC_OK) << f.message();
      for (int64_t b = 0; b < 2; ++b) {
        EXPECT_EQ(0, std::memcmp(logits.data() + b * t * kVocab, whole.data() + (b * 6 + done) * kVocab,
                                 static_cast<size_t>(t * kVocab) * sizeof(float)));
      }
      done += t;
    }
    EXPECT_EQ(cache_of(f.session).lengths[1], 6);
    EXPECT_EQ(cache_of(f.session).capacity, kMaxSeq);
  }
}

TEST(Decode, RowsAdvanceByTheirOwnCount) {
  const Fixture f(decoder());
  const uint8_t mask[4] = {1, 1, 1, 0};
  float logits[4 * kVocab], alone[kVocab];
  tc_batch batch = batch_of(2, 2);
  batch.tokens = kTokens;
  batch.mask = mask;
  ASSERT_EQ(tc_rt_decode(f.session, &batch, logits), TC_OK);
  EXPECT_EQ(cache_of(f.session).lengths[0], 2);
  EXPECT_EQ(cache_of(f.session).lengths[1], 1);
  for (int v = 0; v < kVocab; ++v) EXPECT_EQ(logits[3 * kVocab + v], 0.0f);
  const int32_t lengths[2] = {0, 1}, next[2] = {-5, 6};
  batch = batch_of(2, 1);
  batch.tokens = next;
  batch.lengths = lengths;
  ASSERT_EQ(tc_rt_decode(f.session, &batch, logits), TC_OK) << f.message();
  const int32_t row[2] = {kTokens[2], 6};
  tc_batch single = batch_of(1, 2);
  single.tokens = row;
  void* outputs[1] = {alone};
  ASSERT_EQ(tc_rt_forward(f.session, &single, 1, outputs), TC_OK);
  EXPECT_EQ(0, std::memcmp(logits + kVocab, alone, sizeof alone));
}

TEST(Decode, MisuseLeavesTheCacheAsItWas) {
  const Fixture f(decoder());
  float logits[12 * kVocab];
  tc_batch batch = batch_of(2, 6);
  batch.tokens = kTokens;
  EXPECT_EQ(tc_rt_cache_reset(f.session, 2, 9, nullptr), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "capacity is 9, expected at most 8 (max_seq)");
  EXPECT_EQ(tc_rt_cache_reset(f.session, -1, 4, nullptr), TC_E_ARGUMENT);
  EXPECT_EQ(tc_rt_cache_reset(f.session, 2, 4, &batch), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "memory is given, but fake has no encoder");
  ASSERT_EQ(tc_rt_cache_reset(f.session, 0, 4, nullptr), TC_OK);
  EXPECT_EQ(tc_rt_decode(f.session, &batch, logits), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "row 0 brings 6 tokens, more than the cache's capacity of 4");
  batch.T = 3;
  ASSERT_EQ(tc_rt_decode(f.session, &batch, logits), TC_OK);
  const std::vector<float> before = f.everything();
  EXPECT_EQ(tc_rt_decode(f.session, &batch, logits), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "row 0 of the cache has 3 of 4 tokens, and 3 more do not fit");
  EXPECT_EQ(tc_rt_decode(f.session, &batch, nullptr), TC_E_ARGUMENT);
  tc_batch other = batch_of(1, 1);
  other.tokens = kTokens;
  EXPECT_EQ(tc_rt_decode(f.session, &other, logits), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "B is 1, but the cache has 2 rows");
  const uint8_t holes[6] = {1, 0, 1, 1, 1, 1};
  batch.mask = holes;
  EXPECT_EQ(tc_rt_decode(f.session, &batch, logits), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "mask[0,2] is 1 after a 0, rows of decode and generate are padded on the right");
  EXPECT_EQ(f.everything(), before);
}

TEST(Decode, TheSourceIsEncodedIntoTheCache) {
  const Fixture f(translator());
  const int32_t src[6] = {1, 2, 3, 4, 5, 6}, src_lengths[2] = {3, 1}, tgt[2] = {1, 1};
  float logits[2 * kVocab];
  tc_batch next = batch_of(2, 1);
  next.tgt = tgt;
  EXPECT_EQ(tc_rt_decode(f.session, &next, logits), TC_E_STATE);
  EXPECT_STREQ(f.message(), "there is no source to decode from: cache_reset with one first");
  EXPECT_EQ(tc_rt_cache_reset(f.session, 2, 4, nullptr), TC_E_ARGUMENT);
  tc_batch source = batch_of(2, 0);
  source.S = 3;
  EXPECT_EQ(tc_rt_cache_reset(f.session, 0, 4, &source), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "src is missing");
  source.src = src;
  source.src_lengths = src_lengths;
  EXPECT_EQ(tc_rt_cache_reset(f.session, 3, 4, &source), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "B is 3, but memory has 2 rows");
  ASSERT_EQ(tc_rt_cache_reset(f.session, 0, 4, &source), TC_OK) << f.message();
  EXPECT_EQ(cache_of(f.session).S, 3);
  ASSERT_EQ(tc_rt_decode(f.session, &next, logits), TC_OK) << f.message();
  const float* p = f.parameters();
  EXPECT_EQ(logits[15], ((p[1] + 0.5f) + 1.0f + 1.5f) * 1.0f + p[31]);
  EXPECT_EQ(logits[kVocab + 15], (p[1] + 2.0f) * 1.0f + p[31]);
  const int32_t wrong[6] = {1, 2, 12, 4, -1, -1};  // masked ones may be anything
  source.src = wrong;
  EXPECT_EQ(tc_rt_cache_reset(f.session, 0, 4, &source), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "src[0,2] is 12, expected 0 to 11");
  EXPECT_EQ(cache_of(f.session).lengths[0], 1) << "as before";
}

// -- generation
// ---------------------------------------------------------------------------------------------------------------

struct Rows {
  std::vector<std::vector<int32_t>> rows{8};
  int64_t stop_row = -1;
  static int take(void* user, int64_t row, int32_t token) {
    Rows& r = *static_cast<Rows*>(user);
    r.rows[static_cast<size_t>(row)].push_back(token);
    return row == r.stop_row;
  }
};

tc_sampling greedy(int64_t max_new) {
  tc_sampling sampling{};
  sampling.size = sizeof sampling;
  sampling.max_new = max_new;
  sampling.top_p = 1;
  sampling.eos = -1;
  return sampling;
}

/// What a plain loop over `forward` would generate for one row.
std::vector<int32_t> slowly(const Fixture& f, std::vector<int32_t> row, int64_t count, bool slide,
                            int64_t context = kMaxSeq) {
  std::vector<int32_t> result;
  while (static_cast<int64_t>(result.size()) < count) {
    const int64_t T = std::min(static_cast<int64_t>(row.size()), context);
    if (!slide && T == context) break;
    tc_batch batch = batch_of(1, T);
    batch.tokens = row.data() + row.size() - static_cast<size_t>(T);
    float logits[kVocab];
    void* outputs[1] = {logits};
    EXPECT_EQ(tc_rt_forward(f.session, &batch, 1, outputs), TC_OK) << f.message();
    int32_t best = 0;
    for (int v = 1; v < kVocab; ++v) best = logits[v] > logits[best] ? v : best;
    row.push_back(best);
    result.push_back(best);
  }
  return result;
}

/// Parameters under which the next token depends on all before it, in both directions.
void liven(const Fixture& f) {
  for (int i = 0; i < kVocab; ++i) {
    f.parameters()[i] = static_cast<float>((i * 7) % 5) - 2.2f;
    f.parameters()[16 + i] = std::sin(static_cast<float>(i * i)) * 2;
  }
}

TEST(Generate, GreedyRowsOfDifferentLengths) {
  const Fixture f(decoder(), options_of(2));
  liven(f);
  const int32_t lengths[2] = {2, 4};
  tc_batch prompt = batch_of(2, 4);
  prompt.tokens = kTokens;
  prompt.lengths = lengths;
  for (int context : {TC_CONTEXT_STOP, TC_CONTEXT_SLIDE}) {
    Rows out;
    tc_sampling sampling = greedy(10);
    sampling.context = context;
    ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK) << f.message();
    const bool slide = context == TC_CONTEXT_SLIDE;
    EXPECT_EQ(out.rows[0], slowly(f, {1, 5}, 10, slide));
    EXPECT_EQ(out.rows[1], slowly(f, {7, 3, 15, 0}, 10, slide));
    EXPECT_EQ(out.rows[0].size(), slide ? 10u : 6u);
  }
}

TEST(Generate, AFixedSeqIsWhatSlidingGoesBy) {
  const Fixture free(decoder());
  ModelDesc desc = decoder();
  desc.fixed_seq = 5;
  const Fixture f(desc);
  liven(free);
  liven(f);
  const int32_t lengths[2] = {2, 4};
  tc_batch prompt = batch_of(2, 4);
  prompt.tokens = kTokens;
  prompt.lengths = lengths;
  tc_sampling sampling = greedy(10);
  for (const bool slide : {false, true}) {
    Rows out;
    sampling.context = slide ? TC_CONTEXT_SLIDE : TC_CONTEXT_STOP;
    ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK) << f.message();
    const int64_t context = slide ? 5 : kMaxSeq;
    EXPECT_EQ(out.rows[0], slowly(free, {1, 5}, 10, slide, context));
    EXPECT_EQ(out.rows[1], slowly(free, {7, 3, 15, 0}, 10, slide, context));
  }
  prompt.T = 6;
  prompt.lengths = nullptr;
  EXPECT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, nullptr), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "T is 6, expected at most 5 (seq, which is fixed)");
}

TEST(Generate, ABatchInPartsDrawsAsTheWhole) {
  const Fixture f(decoder());
  liven(f);
  tc_batch prompt = batch_of(3, 4);
  prompt.tokens = kTokens;
  tc_sampling sampling = greedy(4);
  sampling.temperature = 5;
  sampling.seed = 3;
  Rows whole;
  ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &whole), TC_OK) << f.message();
  prompt.B = 1;
  for (sampling.first_row = 0; sampling.first_row < 3; ++sampling.first_row) {
    Rows part;
    prompt.tokens = kTokens + 4 * sampling.first_row;
    ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &part), TC_OK) << f.message();
    EXPECT_EQ(part.rows[0], whole.rows[static_cast<size_t>(sampling.first_row)]);
  }
}

TEST(Generate, WithoutMasksAndWithLengthsOnly) {
  for (bool lengths : {false, true}) {
    ModelDesc desc = decoder();  // (its entries still take the mask that the run time makes)
    desc.has_mask = 0;
    desc.has_lengths = lengths;
    const Fixture f(desc);
    liven(f);
    tc_batch prompt = batch_of(2, 3);
    prompt.tokens = kTokens;
    Rows out;
    out.stop_row = 0;
    tc_sampling sampling = greedy(9);
    sampling.context = TC_CONTEXT_SLIDE;
    ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK) << f.message();
    EXPECT_EQ(out.rows[0].size(), 1u) << "the callback ended it";
    EXPECT_EQ(out.rows[1], slowly(f, {2, 7, 3}, 9, true));
  }
}

TEST(Generate, StopsAtEosAndOnTheCallersWord) {
  const Fixture f(decoder());
  std::fill(f.parameters(), f.parameters() + 16, 0.0f);
  f.parameters()[16 + 7] = 3;  // always 7
  tc_batch prompt = batch_of(1, 2);
  prompt.tokens = kTokens;
  Rows out;
  tc_sampling sampling = greedy(4);
  ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK);
  EXPECT_EQ(out.rows[0], std::vector<int32_t>(4, 7));
  sampling.eos = 7;
  out = Rows{};
  ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK);
  EXPECT_EQ(out.rows[0], std::vector<int32_t>(1, 7)) << "eos is part of the result";
  sampling.max_new = 0;
  out = Rows{};
  ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK);
  EXPECT_TRUE(out.rows[0].empty());
}

TEST(Generate, EncoderDecodersBeginWithBosOrATarget) {
  const Fixture f(translator());
  const int32_t src[2] = {3, 4}, tgt[2] = {9, 2};
  tc_batch prompt = batch_of(1, 0);
  prompt.S = 2;
  prompt.src = src;
  tc_sampling sampling = greedy(12);
  sampling.bos = 9;
  for (int context : {TC_CONTEXT_STOP, TC_CONTEXT_SLIDE}) {
    Rows out, longer;
    sampling.context = context;
    ASSERT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, &out), TC_OK) << f.message();
    EXPECT_EQ(out.rows[0].size(), context == TC_CONTEXT_STOP ? 7u : 12u);
    tc_batch two = prompt;
    two.T = 2;
    two.tgt = tgt;
    ASSERT_EQ(tc_rt_generate(f.session, &two, &sampling, Rows::take, &longer), TC_OK) << f.message();
    EXPECT_EQ(longer.rows[0].size(), context == TC_CONTEXT_STOP ? 6u : 12u);
  }
  sampling.bos = 16;
  EXPECT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, nullptr), TC_E_ARGUMENT);
  EXPECT_STREQ(f.message(), "bos is 16, expected 0 to 15");
}

TEST(Generate, WrongArguments) {
  const Fixture f(decoder());
  float logits[2 * kVocab];
  tc_batch prompt = batch_of(1, 2);
  prompt.tokens = kTokens;
  ASSERT_EQ(tc_rt_decode(f.session, &prompt, logits), TC_OK);
  const std::vector<float> before = f.everything();
  const auto expect = [&](const tc_batch& batch, const tc_sampling& sampling, const char* message) {
    EXPECT_EQ(tc_rt_generate(f.session, &batch, &sampling, Rows::take, nullptr), TC_E_ARGUMENT) << message;
    EXPECT_STREQ(f.message(), message);
    EXPECT_EQ(f.everything(), before);
  };
  tc_sampling s = greedy(2);
  s.temperature = -1;
  expect(prompt, s, "temperature is -1, expected a finite number of at least 0");
  s = greedy(2);
  s.temperature = std::nanf("");
  expect(prompt, s, "temperature is nan, expected a finite number of at least 0");
  s = greedy(2);
  s.top_p = 1.5;
  expect(prompt, s, "top_p is 1.5, expected 0 to 1");
  s = greedy(2);
  s.top_k = -1;
  expect(prompt, s, "top_k is -1, expected at least 0");
  s = greedy(-1);
  expect(prompt, s, "max_new is -1, expected at least 0");
  s = greedy(2);
  s.eos = 16;
  expect(prompt, s, "eos is 16, expected 0 to 15, or -1 for none");
  s = greedy(2);
  s.first_row = -1;
  expect(prompt, s, "first_row is -1, expected at least 0");
  s = greedy(2);
  s.context = 3;
  expect(prompt, s, "context is 3, expected 0 (stop), 1 (slide) or 2 (error)");
  s = greedy(7);
  s.context = TC_CONTEXT_ERROR;
  expect(prompt, s, "max_new is 7, but row 0 has 2 tokens of at most 8 (max_seq)");
  const int32_t empty[1] = {0};
  tc_batch nothing = prompt;
  nothing.lengths = empty;
  expect(nothing, greedy(2), "row 0 of the prompt is empty");
  tc_batch longer = prompt;
  longer.T = 9;
  expect(longer, greedy(2), "T is 9, expected at most 8 (max_seq)");
}

TEST(Generate, UnusableLogitsAreAState) {
  const Fixture f(decoder());
  tc_batch prompt = batch_of(1, 2);
  prompt.tokens = kTokens;
  const tc_sampling sampling = greedy(2);
  f.parameters()[16 + 3] = std::nanf("");
  EXPECT_EQ(tc_rt_generate(f.session, &prompt, &sampling, Rows::take, nullptr), TC_E_STATE);
  EXPECT_STREQ(f.message(), "the logit of token 3 in row 0 is NaN: nothing can be drawn");
}

}  // namespace
}  // namespace tc::test
