// Values that [debug] taps shows: what they are, when they are there, and that nothing else changes by them. (That they
// are right `verify` compares, on the models of descriptions_taps.cpp.)
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "models/descriptions.h"
#include "models/session.h"

namespace tfc::models {
namespace {

const std::string kDecoder = R"(
[model]
kind = "decoder"
d_model = 36
layers = 2
heads = 6
kv_heads = 2
d_ff = 50
vocab = 31
[position]
type = "rope"
[ffn]
activation = "swiglu"
)";

const std::string kPair = R"(
[model]
kind = "encoder-decoder"
d_model = 33
encoder_layers = 2
decoder_layers = 2
heads = 3
d_ff = 40
vocab = 25
max_seq = 64
dropout = 0.2
[norm]
placement = "sandwich"
)";

std::string with_taps(const std::string& description, const std::string& taps = "\"*\"") {
  return description + "[debug]\ntaps = " + taps + "\n";
}

struct Shown {
  std::vector<int64_t> shape;
  Bytes bytes;
};

/// All that the last call has left, by name.
std::map<std::string, Shown> shown(const Session& session, bool gradients = false) {
  std::map<std::string, Shown> all;
  tc_tap tap{};
  tap.size = sizeof tap;
  for (int32_t i = 0; session.api.tap_info(i, &tap) == TC_OK; ++i) {
    tc_array array{};
    array.size = sizeof array;
    if (session.api.tap(session.session, i, gradients, &array) != TC_OK) continue;
    Shown& one = all[tap.name];
    int64_t bytes = session.real_bytes();
    for (int32_t d = 0; d < array.rank; ++d) bytes *= array.shape[d];
    one.shape.assign(array.shape, array.shape + array.rank);
    const auto* data = static_cast<const uint8_t*>(array.data);
    one.bytes.assign(data, data + bytes);
  }
  return all;
}

Results bytes_of(const std::map<std::string, Shown>& all) {
  Results bytes;
  for (const auto& [name, one] : all) bytes[name] = one.bytes;
  return bytes;
}

Results results_of(const Compiled& compiled) {
  Session session(compiled, with_threads(2));
  const Call call = random_call(session, 3, 20, 13);
  return session.everything(call, call.batch.grad_output);
}

TEST(Taps, NothingElseChanges) {
  for (const std::string& description : {kDecoder, kPair}) {
    const Results expected = results_of(compile(description));
    for (const int level : {0, 1, 2})
      EXPECT_EQ(differences(expected, results_of(compile(with_taps(description), {.optimisation = level}))), "")
          << "-O" << level;
    const std::string again = description + "[train]\nrecompute = \"all\"\n";
    EXPECT_EQ(differences(expected, results_of(compile(with_taps(again)))), "");
  }
}

TEST(Taps, TheSameBitsForAnyThreadCountAndPasses) {
  for (const std::string& description : {kDecoder, kPair}) {
    std::vector<Results> values;
    for (const auto& [level, threads] : {std::pair(1, 1), {1, 3}, {0, 1}}) {
      const Compiled compiled = compile(with_taps(description), {.optimisation = level});
      Session session(compiled, with_threads(threads));
      session.start_over();
      session.backward(random_call(session, 3, 40, 33));
      values.push_back(bytes_of(shown(session)));
      for (auto& [name, bytes] : bytes_of(shown(session, true))) values.back()["gradient of " + name] = bytes;
    }
    EXPECT_GT(values[0].size(), 50u);
    EXPECT_EQ(differences(values[0], values[1]), "") << "threads";
    EXPECT_EQ(differences(values[0], values[2]), "") << "-O0";
  }
}

TEST(Taps, WeightsSumToOneOverWhatATokenSees) {
  const Compiled compiled = compile(with_taps(kPair, "\"*.weights\""), {.precision = ir::DType::F64});
  Session session(compiled);
  session.start_over();
  const Call call = random_call(session, 3, 9, 7);
  session.forward(call);
  const auto all = shown(session);
  EXPECT_EQ(all.size(), 6u);
  const ir::Tensor &mask = call.inputs.at("mask"), &src_mask = call.inputs.at("src_mask");
  for (const auto& [name, one] : all) {
    const bool source = name.starts_with("encoder."), keys_of_source = source || name.find(".cross.") != name.npos;
    const int64_t queries = source ? 7 : 9, keys = keys_of_source ? 7 : 9;
    ASSERT_EQ(one.shape, (std::vector<int64_t>{3, 3, queries, keys})) << name;
    const std::vector<double> weights = numbers(session, one.bytes);
    for (int64_t row = 0; row < 3 * 3 * queries; ++row) {
      const int64_t b = row / (3 * queries), t = row % queries;
      double sum = 0;
      for (int64_t s = 0; s < keys; ++s) {
        const double weight = weights[static_cast<size_t>(row * keys + s)];
        sum += weight;
        const bool seen = (keys_of_source ? src_mask : mask)[b * keys + s] != 0 && (keys_of_source || s <= t);
        if (!seen) EXPECT_EQ(weight, 0) << name;
      }
      EXPECT_NEAR(sum, (source ? src_mask : mask)[b * queries + t], 1e-12) << name;
    }
  }
}

/// Rows begin.. of every sequence of [B,T,W], or of every head of [B,H,T,S]; of each at most `width` elements.
Bytes rows_of(const Session& session, const Shown& one, int64_t begin, int64_t count, int64_t width) {
  const size_t rank = one.shape.size();
  const int64_t T = one.shape[rank - 2], W = one.shape[rank - 1], bytes = session.real_bytes();
  const int64_t outer = static_cast<int64_t>(one.bytes.size()) / (T * W * bytes);
  Bytes rows;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t t = begin; t < begin + count; ++t) {
      const auto from = one.bytes.begin() + (o * T + t) * W * bytes;
      rows.insert(rows.end(), from, from + std::min(W, width) * bytes);
    }
  return rows;
}

TEST(Taps, DecodingShowsTheNewTokensToTheSameBits) {
  for (const std::string& description : {kDecoder, kPair}) {
    const Compiled compiled = compile(with_taps(description, R"(["*layers.*.weights", "*layers.*.ffn.*", "*attn"])"));
    Session session(compiled);
    session.start_over();
    const int64_t T = 12, capacity = 20;
    Call call = random_call(session, 2, T, 9, 7, false);
    session.forward(call);
    const auto whole = shown(session);
    session.reset_cache(call, capacity);
    const auto of_source = session.is_pair() ? shown(session) : std::map<std::string, Shown>();
    EXPECT_EQ(of_source.empty(), !session.is_pair());
    for (const auto& [name, one] : of_source) EXPECT_TRUE(one.bytes == whole.at(name).bytes) << name;
    int64_t begin = 0;
    for (const int64_t count : {5, 1, 6}) {
      session.decode(call.batch.slice(session.info, begin, count));
      const auto part = shown(session);
      EXPECT_EQ(part.size() + of_source.size(), whole.size());
      for (const auto& [name, one] : part) {
        EXPECT_TRUE(rows_of(session, one, 0, count, T) == rows_of(session, whole.at(name), begin, count, T))
            << name << " from " << begin;
      }
      begin += count;
    }
  }
}

TEST(Taps, OfARingThereAreNoWeights) {
  const Compiled compiled = compile(with_taps(kDecoder + "[attention]\nwindow = 5\n", "\"layers.0.attn*\""));
  Session session(compiled);
  Call call = random_call(session, 2, 6, 0, 7, false);
  session.forward(call);
  EXPECT_EQ(shown(session).count("layers.0.attn.weights"), 1u);
  session.reset_cache(call, 10);
  session.decode(call.batch.slice(session.info, 0, 6));
  EXPECT_EQ(shown(session).count("layers.0.attn.weights"), 0u);
  EXPECT_EQ(shown(session).count("layers.0.attn.o"), 1u);
}

TEST(Taps, GradientsOfAFrozenModel) {
  const std::string frozen = kDecoder + "[train]\nfreeze = \"*\"\n";
  std::vector<Results> gradients;
  for (const std::string& description : {kDecoder, frozen}) {
    const Compiled compiled = compile(with_taps(description, R"(["embedding.*", "layers.0.*"])"));
    Session session(compiled);
    session.start_over();
    session.backward(random_call(session, 2, 9, 0));
    gradients.push_back(bytes_of(shown(session, true)));
  }
  EXPECT_GT(gradients[0].size(), 8u);
  EXPECT_EQ(gradients[0].count("layers.0.attn.weights"), 0u) << "they are computed beside the loss";
  EXPECT_EQ(differences(gradients[0], gradients[1]), "");
}

TEST(Taps, AreThereAfterTheCallThatLeftThem) {
  const Compiled compiled = compile(with_taps(kDecoder, "\"layers.1.attn.o\""));
  Session session(compiled);
  tc_array array{};
  array.size = sizeof array;
  const auto tap = [&](int32_t index, int gradient) { return session.api.tap(session.session, index, gradient, &array); };
  const std::string none = "the session's last call has left no value of 'layers.1.attn.o'";
  EXPECT_EQ(tap(0, 0), TC_E_STATE);
  EXPECT_EQ(session.message(), none);
  EXPECT_EQ(tap(1, 0), TC_E_ARGUMENT);
  EXPECT_EQ(session.message(), "the tap is number 1, but model has 1");

  const Call call = random_call(session, 2, 9, 0), longer = random_call(session, 3, 30, 0);
  session.forward(call);
  EXPECT_EQ(tap(0, 0), TC_OK);
  EXPECT_EQ(tap(0, 1), TC_E_STATE);
  EXPECT_EQ(session.message(), "the session's last call has left no gradient of 'layers.1.attn.o'");
  session.loss(longer);
  EXPECT_EQ(tap(0, 0), TC_OK);
  EXPECT_EQ(array.shape[1], 30);
  session.backward(call);
  EXPECT_EQ(tap(0, 1), TC_OK);
  EXPECT_EQ(session.api.tap(session.session, 0, 0, nullptr), TC_E_ARGUMENT);
  session.step();
  EXPECT_EQ(tap(0, 0), TC_E_STATE);

  tc_tap info{};
  info.size = sizeof info;
  EXPECT_EQ(session.api.tap_info(0, &info), TC_OK);
  EXPECT_EQ(info.gradients, (1u << TC_ENTRY_TRAIN) | (1u << TC_ENTRY_VJP));
  EXPECT_EQ(info.values & (1u << TC_ENTRY_DECODE), 1u << TC_ENTRY_DECODE);
  EXPECT_EQ(info.values & (1u << TC_ENTRY_STEP), 0u);
  EXPECT_EQ(session.api.tap_info(1, &info), TC_E_ARGUMENT);
}

}  // namespace
}  // namespace tfc::models
