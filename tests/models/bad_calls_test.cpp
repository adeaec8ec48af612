// Wrong calls of a real library: the answer names the argument, nothing is written, and parameters,
// gradients, moments, counters and the cache are as they were.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "models/descriptions.h"
#include "models/rows.h"

namespace tfc::models {
namespace {

/// The session's allocations, so that the cache's bytes can be seen.
struct Allocations {
  std::map<void*, size_t> blocks;
};

void* seen_alloc(void* user, size_t bytes, size_t align) {
  void* memory = nullptr;
  if (posix_memalign(&memory, align, bytes) != 0) return nullptr;
  static_cast<Allocations*>(user)->blocks[memory] = bytes;
  return memory;
}

void seen_release(void* user, void* memory) {
  static_cast<Allocations*>(user)->blocks.erase(memory);
  free(memory);
}

tc_options seen(Allocations& allocations) {
  tc_options options = with_threads(1);
  options.alloc = seen_alloc;
  options.release = seen_release;
  options.user = &allocations;
  return options;
}

class BadCalls : public testing::Test {
 protected:
  static constexpr int64_t kB = 3, kT = 5, kS = 4, kCapacity = 9;

  void use(const char* name) {
    call_.reset();
    session_.reset();
    compiled_ = compile(case_named(name).text);
    session_ = std::make_unique<Session>(compiled_, seen(allocations_));
    call_.reset(new Call(random_call(*session_, kB, kT, kS, 7, false)));
    output_.assign(size_t{1} << 16, 0x5a);
    Session& s = *session_;
    if (compiled_.has("train")) {  // there is something to lose
      s.backward(call());
      s.step();
      s.check(s.api.accumulate(s.session, &call(), nullptr, nullptr));
    }
    if (compiled_.has("decode")) {
      s.reset_cache(call(), kCapacity);
      s.decode(call());
    }
  }

  const tc_batch& call() const { return *call_; }
  tc_batch changed(const std::function<void(tc_batch&)>& change) const {
    tc_batch batch = call();
    change(batch);
    return batch;
  }

  Results all_state() const {
    Results state = session_->state();
    if (!compiled_.has("decode")) return state;
    const size_t bytes = session_->api.memory(TC_MEMORY_CACHE, kB, kCapacity, kS, 1);
    size_t found = 0;
    for (const auto& [memory, size] : allocations_.blocks) {
      if (size != bytes) continue;
      const auto* begin = static_cast<const uint8_t*>(memory);
      state["cache " + std::to_string(found++)] = Bytes(begin, begin + size);
    }
    EXPECT_GE(found, 1u);
    return state;
  }

  /// `what`: a part of the message.
  void expect(tc_status status, const std::string& what, const std::function<tc_status(Session&)>& function) {
    const Results before = all_state();
    EXPECT_EQ(function(*session_), status) << what;
    const std::string message = session_->message();
    EXPECT_NE(message.find(what), std::string::npos) << "\"" << message << "\" lacks \"" << what << "\"";
    EXPECT_EQ(differences(all_state(), before), "") << what;
    EXPECT_TRUE(output_ == Bytes(output_.size(), 0x5a)) << what << ": written to";
  }

  void expect_batch(const std::string& what, const std::function<void(tc_batch&)>& change) {
    const tc_batch batch = changed(change);
    void* outputs[] = {output_.data()};
    const void* const* gradients = call_->batch.grad_output;
    void* none[4] = {};
    expect(TC_E_ARGUMENT, what, [&](Session& s) { return s.api.forward(s.session, &batch, 0, outputs); });
    if (compiled_.has("last"))
      expect(TC_E_ARGUMENT, what, [&](Session& s) { return s.api.forward(s.session, &batch, 1, outputs); });
    expect(TC_E_ARGUMENT, what, [&](Session& s) { return s.api.vjp(s.session, &batch, 0, gradients, none); });
    if (compiled_.has("train")) expect_training(what, change);
  }

  void expect_training(const std::string& what, const std::function<void(tc_batch&)>& change) {
    const tc_batch batch = changed(change);
    const tc_adamw settings = usual_settings();
    double number = 0;
    expect(TC_E_ARGUMENT, what, [&](Session& s) { return s.api.loss(s.session, &batch, &number); });
    expect(TC_E_ARGUMENT, what,
           [&](Session& s) { return s.api.logprobs(s.session, &batch, output_.data()); });
    expect(TC_E_ARGUMENT, what, [&](Session& s) { return s.api.backward(s.session, &batch, &number); });
    expect(TC_E_ARGUMENT, what,
           [&](Session& s) { return s.api.accumulate(s.session, &batch, nullptr, nullptr); });
    expect(TC_E_ARGUMENT, what,
           [&](Session& s) { return s.api.train_step(s.session, &batch, &settings, &number); });
  }

  void expect_decode(tc_status status, const std::string& what,
                     const std::function<void(tc_batch&)>& change) {
    const tc_batch batch = changed([&](tc_batch& b) {
      b.targets = nullptr;
      b.src = b.memory = nullptr;
      b.src_mask = nullptr;
      b.T = 2;
      b.mask = nullptr;
      change(b);
    });
    expect(status, what, [&](Session& s) { return s.api.decode(s.session, &batch, output_.data()); });
  }

  Allocations allocations_;
  Compiled compiled_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Call> call_;
  Bytes output_;
};

/// A copy of ids with one of them changed.
std::vector<int32_t> with_id(const void* ids, int64_t count, int64_t at, int32_t id) {
  const auto* begin = static_cast<const int32_t*>(ids);
  std::vector<int32_t> copy(begin, begin + count);
  copy[static_cast<size_t>(at)] = id;
  return copy;
}

TEST_F(BadCalls, Decoder) {
  use("gpt");  // V=31, max_seq=33
  for (const int32_t id :
       {-1, 31, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    const auto tokens = with_id(call().tokens, kB * kT, 7, id);
    expect_batch("tokens[1,2] is " + std::to_string(id) + ", expected 0 to 30",
                 [&](tc_batch& b) { b.tokens = tokens.data(); });
    const auto targets = with_id(call().targets[0], kB * kT, 14, id);
    const void* pointer = targets.data();
    expect_training("targets[0][2,4] is " + std::to_string(id) + ", expected 0 to 30, or -100 to ignore it",
                    [&](tc_batch& b) { b.targets = &pointer; });
  }
  expect_batch("T is 34, expected at most 33 (max_seq)", [](tc_batch& b) { b.T = 34; });
  expect_batch("T is 0", [](tc_batch& b) { b.T = 0; });
  expect_batch("T is -5", [](tc_batch& b) { b.T = -5; });
  expect_batch("B is 0", [](tc_batch& b) { b.B = 0; });
  expect_batch("B is 2147483648", [](tc_batch& b) { b.B = int64_t{1} << 31; });
  expect_batch("tokens is missing", [](tc_batch& b) { b.tokens = nullptr; });
  expect_batch("x is given, but the model model does not declare it", [](tc_batch& b) { b.x = b.tokens; });
  expect_batch("positions", [](tc_batch& b) { b.positions = b.tokens; });
  expect_batch("lengths", [](tc_batch& b) { b.lengths = b.tokens; });
  expect_batch("tokens is not aligned", [](tc_batch& b) {
    b.tokens = reinterpret_cast<const int32_t*>(reinterpret_cast<uintptr_t>(b.tokens) + 1);
  });
  expect_batch("size", [](tc_batch& b) { b.size = 3; });
  Bytes mask(static_cast<size_t>(kB * kT), 1);
  mask[6] = 2;
  expect_batch("mask[1,1] is 2, expected 0 or 1", [&](tc_batch& b) { b.mask = mask.data(); });
  expect_training("targets is missing", [](tc_batch& b) { b.targets = nullptr; });
}

TEST_F(BadCalls, ArgumentsBesideTheBatch) {
  use("gpt");
  Session& s = *session_;
  void* nowhere[] = {nullptr};
  const void* no_gradient[] = {nullptr};
  void* none[4] = {};
  double number = 0;
  expect(TC_E_ARGUMENT, "batch", [&](Session&) { return s.api.loss(s.session, nullptr, &number); });
  expect(TC_E_ARGUMENT, "mean", [&](Session&) { return s.api.loss(s.session, &call(), nullptr); });
  expect(TC_E_ARGUMENT, "outputs", [&](Session&) { return s.api.forward(s.session, &call(), 0, nullptr); });
  expect(TC_E_ARGUMENT, "outputs[0]",
         [&](Session&) { return s.api.forward(s.session, &call(), 0, nowhere); });
  expect(TC_E_ARGUMENT, "out is NULL", [&](Session&) { return s.api.logprobs(s.session, &call(), nullptr); });
  expect(TC_E_ARGUMENT, "grad_outputs",
         [&](Session&) { return s.api.vjp(s.session, &call(), 0, nullptr, none); });
  expect(TC_E_ARGUMENT, "grad_outputs[0]",
         [&](Session&) { return s.api.vjp(s.session, &call(), 0, no_gradient, none); });
  expect(TC_E_ARGUMENT, "entry is 99", [&](Session&) { return s.api.reserve(s.session, 99, 1, 1, 1); });
  expect(TC_E_ARGUMENT, "T is 34",
         [&](Session&) { return s.api.reserve(s.session, TC_ENTRY_TRAIN, 1, 34, 1); });
  expect(TC_E_STATE, "encode", [&](Session&) { return s.api.reserve(s.session, TC_ENTRY_ENCODE, 1, 1, 1); });
  EXPECT_EQ(s.api.forward(nullptr, &call(), 0, nowhere), TC_E_ARGUMENT);
  EXPECT_EQ(s.api.parameter(s.model, "layers.9.attn.q.weight"), nullptr);
  EXPECT_EQ(s.api.gradient(s.model, nullptr), nullptr);
}

TEST_F(BadCalls, Settings) {
  use("gpt");
  const auto expect_settings = [&](const std::string& what, const std::function<void(tc_adamw&)>& change) {
    tc_adamw settings = usual_settings();
    change(settings);
    double number = 0;
    expect(TC_E_ARGUMENT, what, [&](Session& s) { return s.api.step(s.session, &settings, &number); });
    expect(TC_E_ARGUMENT, what,
           [&](Session& s) { return s.api.train_step(s.session, &call(), &settings, &number); });
  };
  expect_settings("lr is -1", [](tc_adamw& a) { a.lr = -1; });
  expect_settings("lr is nan", [](tc_adamw& a) { a.lr = NAN; });
  expect_settings("beta1 is 1", [](tc_adamw& a) { a.beta1 = 1; });
  expect_settings("beta2 is -0.1", [](tc_adamw& a) { a.beta2 = -0.1; });
  expect_settings("eps is inf", [](tc_adamw& a) { a.eps = INFINITY; });
  expect_settings("weight_decay is -2", [](tc_adamw& a) { a.weight_decay = -2; });
  expect_settings("clip is nan", [](tc_adamw& a) { a.clip = NAN; });
  expect_settings("count is -3", [](tc_adamw& a) { a.count = -3; });
  std::vector<double> scales(static_cast<size_t>(session_->info.parameter_count), 1);
  scales[2] = -1;
  expect_settings("lr_scale[2]", [&](tc_adamw& a) { a.lr_scale = scales.data(); });
  expect_settings("adamw", [](tc_adamw& a) { a.size = 0; });
  double number = 0;
  expect(TC_E_ARGUMENT, "adamw", [&](Session& s) { return s.api.step(s.session, nullptr, &number); });
}

TEST_F(BadCalls, Order) {
  use("gpt");
  Session& s = *session_;
  s.backward(call());
  expect(TC_E_STATE, "step or zero_grad",
         [&](Session&) { return s.api.accumulate(s.session, &call(), nullptr, nullptr); });
  use("decoder_hidden_states");
  double number = 0;
  const tc_batch batch = changed([](tc_batch& b) { b.targets = nullptr; });
  const tc_adamw settings = usual_settings();
  expect(TC_E_STATE, "loss", [&](Session& t) { return t.api.loss(t.session, &batch, &number); });
  expect(TC_E_STATE, "no backward", [&](Session& t) { return t.api.backward(t.session, &batch, &number); });
  expect(TC_E_STATE, "no backward",
         [&](Session& t) { return t.api.accumulate(t.session, &batch, nullptr, nullptr); });
  expect(TC_E_STATE, "no backward",
         [&](Session& t) { return t.api.train_step(t.session, &batch, &settings, &number); });
  use("bert");
  expect(TC_E_STATE, "decode", [&](Session& t) { return t.api.decode(t.session, &call(), output_.data()); });
  expect(TC_E_STATE, "decode", [&](Session& t) { return t.api.cache_reset(t.session, 1, 1, nullptr); });
}

TEST_F(BadCalls, Cache) {
  use("gpt");
  expect_decode(TC_E_ARGUMENT, "row 0 of the cache has 5 of 9 tokens, and 5 more do not fit",
                [](tc_batch& b) { b.T = 5; });
  expect_decode(TC_E_ARGUMENT, "B is 2, but the cache has 3 rows", [](tc_batch& b) { b.B = 2; });
  expect_decode(TC_E_ARGUMENT, "T is 0", [](tc_batch& b) { b.T = 0; });
  const auto tokens = with_id(call().tokens, kB * kT, 3, 31);
  expect_decode(TC_E_ARGUMENT, "tokens[1,1] is 31", [&](tc_batch& b) { b.tokens = tokens.data(); });
  const Bytes hole = {1, 1, 0, 1, 1, 0};
  expect_decode(TC_E_ARGUMENT, "mask[1,1] is 1 after a 0", [&](tc_batch& b) { b.mask = hole.data(); });
  Session& s = *session_;
  expect(TC_E_ARGUMENT, "logits", [&](Session&) {
    const tc_batch batch = changed([](tc_batch& b) { b.targets = nullptr, b.T = 2; });
    return s.api.decode(s.session, &batch, nullptr);
  });
  expect(TC_E_ARGUMENT, "capacity is 34",
         [&](Session&) { return s.api.cache_reset(s.session, 2, 34, nullptr); });
  expect(TC_E_ARGUMENT, "capacity is -1",
         [&](Session&) { return s.api.cache_reset(s.session, 2, -1, nullptr); });
  expect(TC_E_ARGUMENT, "B is -1", [&](Session&) { return s.api.cache_reset(s.session, -1, 0, nullptr); });
  expect(TC_E_ARGUMENT, "memory", [&](Session&) { return s.api.cache_reset(s.session, 0, 0, &call()); });
}

TEST_F(BadCalls, Pairs) {
  use("two_vocabularies");  // V=3, source 33, max_seq=33
  const auto src = with_id(call().src, kB * kS, 5, 33);
  expect_batch("src[1,1] is 33, expected 0 to 32", [&](tc_batch& b) { b.src = src.data(); });
  const auto tgt = with_id(call().tgt, kB * kT, 5, 3);
  expect_batch("tgt[1,0] is 3, expected 0 to 2", [&](tc_batch& b) { b.tgt = tgt.data(); });
  expect_batch("src is missing", [](tc_batch& b) { b.src = nullptr; });
  expect_batch("tgt is missing", [](tc_batch& b) { b.tgt = nullptr; });
  expect_batch("S is 0", [](tc_batch& b) { b.S = 0; });
  expect_batch("S is 34, expected at most 33 (max_seq)", [](tc_batch& b) { b.S = 34; });
  expect_batch("tokens is given", [](tc_batch& b) { b.tokens = static_cast<const int32_t*>(b.tgt); });
  Session& s = *session_;
  expect(TC_E_ARGUMENT, "memory is NULL",
         [&](Session&) { return s.api.cache_reset(s.session, 0, 0, nullptr); });
  const tc_batch wrong = changed([&](tc_batch& b) { b.src = src.data(), b.targets = nullptr; });
  expect(TC_E_ARGUMENT, "src[1,1] is 33",
         [&](Session&) { return s.api.cache_reset(s.session, 0, 0, &wrong); });
}

TEST_F(BadCalls, Floats) {
  use("decoder_floats");
  expect_batch("x is missing", [](tc_batch& b) { b.x = nullptr; });
  expect_batch("x is not aligned", [](tc_batch& b) { b.x = static_cast<const char*>(b.x) + 2; });
  expect_batch("targets is given", [&](tc_batch& b) {
    static const void* some = nullptr;
    b.targets = &some;
  });
  Session& s = *session_;
  expect(TC_E_ARGUMENT, "capacity", [&](Session&) { return s.api.cache_reset(s.session, 2, 0, nullptr); });
}

TEST_F(BadCalls, GoodCallsStillWork) {
  use("gpt");
  const Results before = session_->everything(call(), call_->batch.grad_output);
  const tc_batch bad = changed([](tc_batch& b) { b.T = 34; });
  void* outputs[] = {output_.data()};
  EXPECT_EQ(session_->api.forward(session_->session, &bad, 0, outputs), TC_E_ARGUMENT);
  EXPECT_EQ(differences(session_->everything(call(), call_->batch.grad_output), before), "");
  EXPECT_EQ(session_->message(), "") << "a call that succeeds forgets the last failure";
}

// A hook that calls back into the library while it is at work.
struct Reentry {
  Session* session = nullptr;
  tc_session* other = nullptr;
  const tc_batch* batch = nullptr;
  bool inside = false;
  int calls = 0;
};

void reenter(void* user, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg) {
  Reentry& reentry = *static_cast<Reentry*>(user);
  if (reentry.session && !reentry.inside && reentry.calls < 3) {
    reentry.inside = true;
    ++reentry.calls;
    const tc_api& api = reentry.session->api;
    double number = 0;
    EXPECT_EQ(api.loss(reentry.session->session, reentry.batch, &number), TC_E_STATE);
    EXPECT_EQ(api.zero_grad(reentry.session->session), TC_E_STATE);
    EXPECT_STREQ(api.message(reentry.session->session), "the session is busy: one thread at a time");
    if (reentry.other) {
      EXPECT_EQ(api.backward(reentry.other, reentry.batch, &number), TC_E_STATE);
      EXPECT_STREQ(api.message(reentry.other), "another session is training this model: one at a time");
    }
    reentry.inside = false;
  }
  for (int64_t task = 0; task < tasks; ++task) body(arg, task);
}

TEST(BusySession, AnswersAtOnceAndIsNotDisturbed) {
  const Compiled compiled = compile(case_named("gpt").text);
  Session plain(compiled);
  const Call call = random_call(plain, 33, 17, 0);
  const Results expected = plain.everything(call, call.batch.grad_output);

  Reentry reentry;
  tc_options options = with_threads(1);
  options.parallel_for = reenter;
  options.user = &reentry;
  Session session(compiled, options);
  ASSERT_EQ(session.api.session_create(session.model, nullptr, &reentry.other), TC_OK);
  reentry.session = &session;
  reentry.batch = &call.get();
  session.backward(call);
  EXPECT_EQ(reentry.calls, 3);
  EXPECT_TRUE(session.block(TC_BLOCK_GRADIENTS) == expected.at("train gradients"));
  reentry.session = nullptr;
  session.api.session_destroy(reentry.other);
}

}  // namespace
}  // namespace tfc::models
