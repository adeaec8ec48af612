// The same inputs give the same bits: for any number of threads, whoever runs the tasks and in whatever
// order, run after run, at every -O level, and with each optional pass left out.
#include <gtest/gtest.h>

#include <random>

#include "models/hooks.h"
#include "models/session.h"
#include "passes/pass.h"

namespace tfc::models {
namespace {

// Wide enough for every kernel to have several tasks, and work enough for the pool to be asked.
const char* const kDecoder = R"(
[model]
kind = "decoder"
d_model = 72
layers = 2
heads = 6
kv_heads = 2
head_dim = 16
d_ff = 200
vocab = 150
[position]
type = "rope"
[norm]
type = "rmsnorm"
[ffn]
activation = "swiglu"
[loss]
label_smoothing = 0.1
)";

const char* const kExperts = R"(
[model]
kind = "decoder"
d_model = 72
layers = 2
heads = 6
d_ff = 100
vocab = 150
max_seq = 64
[ffn]
activation = "swiglu"
moe = { experts = 6, top_k = 2, aux_loss = 0.1, capacity = 1.0 }
)";

const char* const kPair = R"(
[model]
kind = "encoder-decoder"
d_model = 65
encoder_layers = 1
decoder_layers = 1
heads = 5
d_ff = 130
vocab = 95
max_seq = 64
[embedding]
norm = true
[norm]
placement = "post"
[head]
bias = true
)";

const char* const kClassifier = R"(
[model]
kind = "encoder"
d_model = 72
layers = 2
heads = 4
vocab = 90
max_seq = 64
[embedding]
types = 2
[norm]
placement = "sandwich"
[head]
type = "classifier"
classes = 7
pool = "mean"
)";

const char* const kFrozenAndAgain = R"(
[model]
kind = "decoder"
d_model = 72
layers = 3
heads = 6
vocab = 150
max_seq = 64
[train]
freeze = ["embedding", "layers.0", "layers.2.attn.q"]
recompute = "all"
)";

const char* const kDropout = R"(
[model]
kind = "decoder"
d_model = 72
layers = 3
heads = 6
kv_heads = 2
vocab = 150
max_seq = 64
dropout = 0.2
pattern = ["plain", "gated", "wide"]
[block.plain]
ffn = { activation = "relu" }
[block.gated]
ffn = { activation = "geglu" }
[block.wide]
norm = { placement = "sandwich" }
attention = { dropout = 0.0 }
)";

Results results_of(const Compiled& compiled, const tc_options& options) {
  Session session(compiled, options);
  const Call call = random_call(session, 6, 50, 41);
  return session.everything(call, call.batch.grad_output);
}

class SameBits : public testing::TestWithParam<std::tuple<const char*, ir::DType>> {};

TEST_P(SameBits, WhoeverRunsTheTasks) {
  const auto& [description, precision] = GetParam();
  const Compiled compiled = compile(description, {.precision = precision});
  const Results one = results_of(compiled, with_threads(1));
  EXPECT_GE(one.size(), 10u);
  EXPECT_EQ(differences(one, results_of(compiled, with_threads(1))), "") << "from run to run";
  for (const int threads : {2, 3, 4}) {
    EXPECT_EQ(differences(one, results_of(compiled, with_threads(threads))), "") << threads << " threads";
  }
  EXPECT_EQ(differences(one, results_of(compiled, with_hook(backwards, 1))), "") << "backwards";
  std::mt19937_64 random(3);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(differences(one, results_of(compiled, with_hook(shuffled, 1, &random))), "")
        << "in a random order";
  }
  EXPECT_EQ(differences(one, results_of(compiled, with_hook(on_three_threads, 3))), "") << "on three threads";
}

TEST_P(SameBits, RunAfterRunInOneSession) {
  const auto& [description, precision] = GetParam();
  const Compiled compiled = compile(description, {.optimisation = 0, .precision = precision});
  Session session(compiled, with_threads(3));
  const Call call = random_call(session, 6, 50, 41);
  const Results first = session.everything(call, call.batch.grad_output);
  for (int run = 0; run < 5; ++run) {
    EXPECT_EQ(differences(first, session.everything(call, call.batch.grad_output)), "") << run;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SameBits,
                         testing::Values(std::tuple(kDecoder, ir::DType::F32), std::tuple(kExperts, ir::DType::F32),
                                         std::tuple(kPair, ir::DType::F32),
                                         std::tuple(kClassifier, ir::DType::F32),
                                         std::tuple(kDropout, ir::DType::F32),
                                         std::tuple(kDecoder, ir::DType::F64),
                                         std::tuple(kPair, ir::DType::F64)));

std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const passes::Pass& pass : passes::all_passes()) {
    const std::string name(pass.name);
    if (!pass.mandatory && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  names.push_back("reuse-memory");
  return names;
}

class EveryWayToCompile : public testing::TestWithParam<std::tuple<const char*, ir::DType>> {};

TEST_P(EveryWayToCompile, OptimisationLevels) {
  const auto& [description, precision] = GetParam();
  const Results plain =
      results_of(compile(description, {.optimisation = 0, .precision = precision}), with_threads(1));
  for (const int level : {1, 2, 3}) {
    const Compiled compiled = compile(description, {.optimisation = level, .precision = precision});
    EXPECT_EQ(differences(plain, results_of(compiled, with_threads(2))), "") << "-O" << level;
  }
}

TEST_P(EveryWayToCompile, EachOptionalPassLeftOut) {
  const auto& [description, precision] = GetParam();
  const Results all = results_of(compile(description, {.precision = precision}), with_threads(1));
  for (const std::string& pass : optional_passes()) {
    const Compiled compiled = compile(description, {.precision = precision, .disabled = {pass}});
    EXPECT_EQ(differences(all, results_of(compiled, with_threads(2))), "") << "without " << pass;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryWayToCompile,
                         testing::Values(std::tuple(kDecoder, ir::DType::F32), std::tuple(kExperts, ir::DType::F32),
                                         std::tuple(kPair, ir::DType::F64),
                                         std::tuple(kFrozenAndAgain, ir::DType::F32),
                                         std::tuple(kDropout, ir::DType::F32),
                                         std::tuple(kClassifier, ir::DType::F32)));

}  // namespace
}  // namespace tfc::models
