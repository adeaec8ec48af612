// Frozen parameters: they never move and own no memory of training, and what is trained is trained as without
// them, to the bit.
#include <gtest/gtest.h>

#include <cmath>

#include "models/session.h"

namespace tfc::models {
namespace {

const std::string kDecoder = R"(
[model]
kind = "decoder"
d_model = 36
layers = 3
heads = 3
vocab = 31
max_seq = 33
)";

const std::string kEncoder = R"(
[model]
kind = "encoder"
d_model = 36
layers = 3
heads = 4
vocab = 29
max_seq = 33
[embedding]
norm = true
types = 2
[norm]
placement = "post"
[ffn]
activation = "geglu"
[head]
type = "classifier"
classes = 5
)";

std::string freezing(const std::string& description, const std::string& list) {
  return description + "[train]\nfreeze = " + list + "\n";
}

/// Each parameter's elements of one kind ("grads"), by name; those that are not there are left out.
template <class Where>
Results by_name(const Session& session, Where where) {
  Results found;
  for (int32_t i = 0; i < session.info.parameter_count; ++i) {
    tc_parameter parameter{};
    parameter.size = sizeof parameter;
    session.check(session.api.parameter_info(i, &parameter));
    const auto* data = static_cast<const uint8_t*>(where(parameter.name));
    if (data) found[parameter.name] = Bytes(data, data + parameter.elements * session.real_bytes());
  }
  return found;
}

Results parameters(const Session& session) {
  return by_name(session, [&](const char* name) { return session.api.parameter(session.model, name); });
}
Results gradients(const Session& session) {
  return by_name(session, [&](const char* name) { return session.api.gradient(session.model, name); });
}

/// Those of `all` that `some` has.
Results among(const Results& all, const Results& some) {
  Results found;
  for (const auto& [name, bytes] : some) found[name] = all.at(name);
  return found;
}

/// Gradients of the mean loss and of any output, with and without the freeze, for the same parameters.
void expect_same_gradients(const std::string& description, const std::string& list, size_t trained) {
  SCOPED_TRACE(list);
  const Compiled whole = compile(description), part = compile(freezing(description, list));
  Session all(whole), some(part);
  ASSERT_EQ(all.info.parameter_count, some.info.parameter_count);
  all.randomise(1);
  some.randomise(1);
  EXPECT_EQ(differences(parameters(all), parameters(some)), "");
  const Call call = random_call(all, 3, 17, 17);
  EXPECT_EQ(all.loss(call), some.loss(call));
  EXPECT_EQ(all.backward(call), some.backward(call));
  EXPECT_EQ(gradients(some).size(), trained);
  EXPECT_EQ(differences(among(gradients(all), gradients(some)), gradients(some)), "") << "of the loss";
  all.vjp(call, call.batch.grad_output);
  some.vjp(call, call.batch.grad_output);
  EXPECT_EQ(differences(among(gradients(all), gradients(some)), gradients(some)), "") << "of the output";
}

TEST(Frozen, GradientsOfTheOthersAreTheSameBits) {
  expect_same_gradients(kDecoder, R"(["embedding"])", 50);
  expect_same_gradients(kDecoder, R"(["embedding", "layers.0-1"])", 18);
  expect_same_gradients(kDecoder, R"(["layers.1-2", "final_norm"])", 18);
  expect_same_gradients(kDecoder, R"(["*.attn.*", "*.norm?.weight"])", 22);
  expect_same_gradients(kEncoder, R"(["embedding", "layers.0-1"])", 19);
  expect_same_gradients(kEncoder, R"(["*"])", 0);
  expect_same_gradients(kEncoder, R"(["embedding", "layers.0-1", "layers.2.*.weight"])", 10);
}

TEST(Frozen, NeverMoves) {
  const Compiled compiled = compile(freezing(kDecoder, R"(["embedding", "layers.1", "layers.2.attn.k"])"));
  Session session(compiled);
  const Results before = parameters(session);
  const Call call = random_call(session, 3, 17, 17);
  tc_adamw settings = usual_settings();
  settings.weight_decay = 0.5;
  for (int i = 0; i < 3; ++i) {
    session.check(session.api.train_step(session.session, &call.get(), &settings, nullptr));
  }
  for (const auto& [name, bytes] : parameters(session)) {
    const bool frozen = name.find("_emb") != std::string::npos || name.starts_with("layers.1.") ||
                        name.starts_with("layers.2.attn.k");
    const bool has_no_slope = name.ends_with("attn.k.bias");  // softmax does not see a bias of the keys
    if (!has_no_slope) {
      EXPECT_EQ(bytes == before.at(name), frozen) << name;
    }
    EXPECT_EQ(session.api.gradient(session.model, name.c_str()) == nullptr, frozen) << name;
    for (const int which : {1, 2}) {
      EXPECT_EQ(session.api.moment(session.model, which, name.c_str()) == nullptr, frozen) << name;
    }
  }
}

TEST(Frozen, MemoryIsThatOfTheOthers) {
  const Compiled whole = compile(kDecoder),
                 part = compile(freezing(kDecoder, R"(["embedding", "layers.0-1"])"));
  const auto bytes = [](const Compiled& compiled, int what) {
    return compiled.api().memory(what, 4, 32, 32, 1);
  };
  EXPECT_EQ(bytes(whole, TC_MEMORY_PARAMETERS), bytes(part, TC_MEMORY_PARAMETERS));
  EXPECT_LT(bytes(part, TC_MEMORY_GRADIENTS), 0.4 * bytes(whole, TC_MEMORY_GRADIENTS));
  EXPECT_LT(bytes(part, TC_MEMORY_MOMENTS), 0.4 * bytes(whole, TC_MEMORY_MOMENTS));
  const int train = static_cast<int>(TC_MEMORY_WORKSPACE) + static_cast<int>(TC_ENTRY_TRAIN);
  EXPECT_LT(bytes(part, train), 0.7 * bytes(whole, train));
}

/// The norm that is clipped is that of what is trained.
TEST(Frozen, ClipsTheOthersNorm) {
  const Compiled compiled = compile(freezing(kDecoder, R"(["layers.0-2"])"), {.precision = ir::DType::F64});
  Session session(compiled);
  const Call call = random_call(session, 3, 17, 17);
  session.backward(call);
  double squares = 0;
  for (const auto& [name, bytes] : gradients(session)) {
    for (const double g : numbers(session, bytes)) squares += g * g;
  }
  EXPECT_NEAR(session.step(), std::sqrt(squares), 1e-12);
}

TEST(Frozen, WithEverythingFrozenAStepDoesNothing) {
  const Compiled compiled = compile(freezing(kDecoder, R"("*")"));
  Session session(compiled);
  const Results before = parameters(session);
  const Call call = random_call(session, 3, 17, 17);
  const tc_adamw settings = usual_settings();
  double mean = 0;
  session.check(session.api.train_step(session.session, &call.get(), &settings, &mean));
  EXPECT_EQ(mean, session.loss(call));
  EXPECT_EQ(differences(before, parameters(session)), "");
  EXPECT_TRUE(gradients(session).empty());
  session.backward(call);
  EXPECT_EQ(session.step(), 0);
  EXPECT_LE(session.api.memory(TC_MEMORY_GRADIENTS, 1, 1, 1, 1), 64u);
}

/// A float input's gradient comes through frozen layers.
TEST(Frozen, InputsHaveGradientsAllTheSame) {
  const std::string floats = R"(
[model]
kind = "encoder"
d_model = 36
layers = 2
heads = 4
)";
  const Compiled whole = compile(floats),
                 part = compile(freezing(floats, R"(["layers.0", "layers.1.attn"])"));
  Session all(whole), some(part);
  all.randomise(1);
  some.randomise(1);
  const Call call = random_call(all, 3, 17, 17);
  EXPECT_EQ(differences(all.vjp(call, call.batch.grad_output), some.vjp(call, call.batch.grad_output)), "");
}

}  // namespace
}  // namespace tfc::models
