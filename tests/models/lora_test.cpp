// Low-rank adapters: what training owns and moves, and merging.
#include <gtest/gtest.h>

#include <cmath>

#include "models/descriptions.h"
#include "models/session.h"

namespace tfc::models {
namespace {

std::string text_of(const char* name) { return case_named(name).text; }

/// Doubles of one parameter.
std::vector<double> parameter(const Session& session, const std::string& name) {
  for (int32_t i = 0; i < session.info.parameter_count; ++i) {
    tc_parameter info{};
    info.size = sizeof info;
    EXPECT_EQ(session.api.parameter_info(i, &info), TC_OK);
    if (name != info.name) continue;
    const auto* data = static_cast<const double*>(session.api.parameter(session.model, info.name));
    return {data, data + info.elements};
  }
  ADD_FAILURE() << name;
  return {};
}

double greatest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) greatest = std::max(greatest, std::abs(a[i] - b[i]));
  return greatest;
}

class Lora : public ::testing::TestWithParam<const char*> {};

TEST_P(Lora, MergedWeightsGiveTheSameAndAdaptersNothing) {
  const Compiled compiled = compile(text_of(GetParam()), {.precision = ir::DType::F64});
  Session session(compiled);
  session.randomise(1);
  const Case& model = case_named(GetParam());
  const Call call = random_call(session, model.B, model.T, model.S);
  tc_batch batch = call.get();
  batch.targets = nullptr;
  const std::vector<double> before = numbers(session, session.forward(batch));
  std::vector<std::string> linears;
  for (const ir::Parameter& p : compiled.planned.parameters) {
    if (p.name.ends_with(".lora_a")) linears.push_back(p.name.substr(0, p.name.size() - 7));
  }
  ASSERT_FALSE(linears.empty());
  std::vector<std::vector<double>> weights;
  for (const std::string& linear : linears) weights.push_back(parameter(session, linear + ".weight"));
  ASSERT_EQ(session.api.merge_lora(session.session), TC_OK);
  EXPECT_LT(greatest_difference(numbers(session, session.forward(batch)), before), 1e-12);
  for (size_t i = 0; i < linears.size(); ++i) {
    EXPECT_GT(greatest_difference(parameter(session, linears[i] + ".weight"), weights[i]), 1e-3)
        << linears[i];
    for (const double b : parameter(session, linears[i] + ".lora_b")) ASSERT_EQ(b, 0) << linears[i];
    weights[i] = parameter(session, linears[i] + ".weight");
  }
  ASSERT_EQ(session.api.merge_lora(session.session), TC_OK);  // there is nothing left to add
  for (size_t i = 0; i < linears.size(); ++i)
    EXPECT_EQ(greatest_difference(parameter(session, linears[i] + ".weight"), weights[i]), 0) << linears[i];
}

INSTANTIATE_TEST_SUITE_P(Models, Lora, ::testing::Values("lora_of_decoder", "lora_of_classifier"));

/// Of GPT-2's size in small: gradients, moments and what the backward keeps are those of the adapters.
TEST(LoraMemory, TrainingOwnsLittle) {
  const std::string plain = R"(
[model]
kind = "decoder"
d_model = 64
layers = 4
heads = 4
vocab = 500
max_seq = 64
)";
  const Compiled whole = compile(plain), adapted = compile(plain + "[train.lora]\nrank = 4\n");
  EXPECT_EQ(adapted.planned.trained_block(), 4 * 2 * 2 * 4 * 64);
  const auto bytes = [](const Compiled& compiled, int what) {
    return compiled.api().memory(what, 4, 64, 64, 1);
  };
  EXPECT_EQ(bytes(adapted, TC_MEMORY_GRADIENTS), 4u * 4096);
  EXPECT_EQ(bytes(adapted, TC_MEMORY_MOMENTS), 2u * 4 * 4096);
  EXPECT_LT(bytes(adapted, TC_MEMORY_WORKSPACE + TC_ENTRY_TRAIN),
            bytes(whole, TC_MEMORY_WORKSPACE + TC_ENTRY_TRAIN));
}

TEST(LoraMemory, AModelWithoutAdaptersHasNothingToMerge) {
  const Compiled compiled = compile(text_of("gpt"));
  Session session(compiled);
  EXPECT_EQ(session.api.merge_lora(session.session), TC_E_STATE);
  EXPECT_STREQ(session.api.message(session.session),
               "the model model has no low-rank adapters, or was compiled without it");
}

}  // namespace
}  // namespace tfc::models
