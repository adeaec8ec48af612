// What dropout promises of a whole model: which calls drop, what the masks depend on, and what they do not.
#include <gtest/gtest.h>

#include <cstring>

#include "models/session.h"

namespace tfc::models {
namespace {

std::string decoder(const std::string& dropout) {
  return "[model]\nkind = \"decoder\"\nd_model = 24\nlayers = 2\nheads = 3\nvocab = 31\nmax_seq = 32\n" + dropout;
}

std::string hidden_states(const std::string& dropout) {
  return "[model]\nkind = \"encoder\"\nd_model = 24\nlayers = 2\nheads = 3\n" + dropout;
}

const std::string kHalf = "dropout = 0.5\n";

TEST(Dropout, OnlyTrainingDrops) {
  const Compiled plain = compile(decoder("")), half = compile(decoder(kHalf));
  Session a(plain), b(half);
  const Call call = random_call(a, 2, 9, 0);
  Results without = a.everything(call, call.batch.grad_output), with = b.everything(call, call.batch.grad_output);
  for (const char* name : {"infer", "last", "loss", "logprobs", "decode", "vjp gradients"})
    EXPECT_TRUE(without.at(name) == with.at(name)) << name;
  for (const char* name : {"train mean", "train gradients"}) EXPECT_FALSE(without.at(name) == with.at(name)) << name;
  EXPECT_FALSE(with.at("vjp gradients") == with.at("dropped vjp gradients"));
}

TEST(Dropout, CallsThatDropAreCounted) {
  const Compiled compiled = compile(decoder(kHalf));
  Session s(compiled);
  const Call call = random_call(s, 2, 9, 0);
  EXPECT_EQ(s.calls(), 0u);
  s.forward(call);
  s.loss(call);
  s.vjp(call, call.batch.grad_output);
  EXPECT_EQ(s.calls(), 0u);
  const double first = s.backward(call);
  EXPECT_EQ(s.calls(), 1u);
  const double second = s.backward(call);
  s.vjp(call, call.batch.grad_output, true);
  EXPECT_EQ(s.calls(), 3u);
  s.check(s.api.zero_grad(s.session));
  double sum = 0, count = 0;
  s.check(s.api.accumulate(s.session, &call.get(), &sum, &count));
  const tc_adamw settings = usual_settings();
  s.check(s.api.train_step(s.session, &call.get(), &settings, nullptr));
  EXPECT_EQ(s.calls(), 5u);
  EXPECT_NE(first, second);
  s.start_over();
  EXPECT_EQ(s.backward(call), first);
  EXPECT_EQ(s.backward(call), second);

  tc_state state{};
  state.size = sizeof state;
  s.check(s.api.get_state(s.model, &state));
  state.call = 1;
  s.check(s.api.set_state(s.model, &state));
  EXPECT_EQ(s.backward(call), second);
  state.seed = 1;
  s.check(s.api.set_state(s.model, &state));
  EXPECT_NE(s.backward(call), second);
}

/// The rows of a batch's grad_x.
std::vector<Bytes> rows_of(const Bytes& bytes, int64_t rows) {
  std::vector<Bytes> result;
  const size_t size = bytes.size() / static_cast<size_t>(rows);
  for (int64_t b = 0; b < rows; ++b)
    result.emplace_back(bytes.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(b) * size),
                        bytes.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(b + 1) * size));
  return result;
}

Bytes dropped_gradient(Session& s, const tools::Inputs& inputs, int64_t B, int64_t T) {
  const Call call(s, inputs, point_for(s.compiled.joint, B, T, 0));
  s.start_over();
  return s.vjp(call, call.batch.grad_output, true).at("vjp grad_x");
}

TEST(Dropout, MasksDependOnTheRowAndNotOnTheBatch) {
  const Compiled compiled = compile(hidden_states(kHalf));
  Session s(compiled);
  tools::Inputs inputs = random_call(s, 3, 9, 0, 7, false).inputs;
  for (const char* name : {"x", "grad_output"}) {  // equal rows
    std::vector<double>& data = inputs.at(name).data;
    const size_t row = data.size() / 3;
    for (size_t i = row; i < data.size(); ++i) data[i] = data[i - row];
  }
  const std::vector<Bytes> three = rows_of(dropped_gradient(s, inputs, 3, 9), 3);
  EXPECT_FALSE(three[0] == three[1]);
  EXPECT_FALSE(three[1] == three[2]);
  for (auto& [name, tensor] : inputs) {
    if (name == "dropout") continue;
    tensor.data.resize(tensor.data.size() / 3 * 2);
    tensor.shape[0] = 2;
  }
  const std::vector<Bytes> two = rows_of(dropped_gradient(s, inputs, 2, 9), 2);
  EXPECT_TRUE(two[0] == three[0]);
  EXPECT_TRUE(two[1] == three[1]);
}

TEST(Dropout, AllOfASubLayerLeavesTheResidualStream) {
  const Compiled compiled = compile(hidden_states("[residual]\ndropout = 1.0\n[norm]\nfinal = false\n"));
  Session s(compiled);
  const Call call = random_call(s, 2, 9, 0, 7, false);
  const Bytes gradient = s.vjp(call, call.batch.grad_output, true).at("vjp grad_x");
  EXPECT_EQ(0, std::memcmp(gradient.data(), call.batch.grad_output[0], gradient.size()));
  for (const double g : numbers(s, s.block(TC_BLOCK_GRADIENTS))) ASSERT_EQ(g, 0);
}

TEST(Dropout, NothingDroppedIsNothingCompiled) {
  const Compiled plain = compile(decoder("")), zero = compile(decoder("dropout = 0.0\n"));
  EXPECT_EQ(ir::print(plain.planned, ir::Places::Without), ir::print(zero.planned, ir::Places::Without));
}

}  // namespace
}  // namespace tfc::models
