// What stands at a masked position is never read, and comes out as zero; a row without a token gives zeros,
// passes no gradient, and its target does not count; where no target counts the loss and its gradients are zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/descriptions.h"
#include "models/rows.h"

namespace tfc::models {
namespace {

struct MaskedCase {
  const char* name;  // of descriptions.cpp
  ir::DType precision;
};

constexpr auto kF32 = ir::DType::F32, kF64 = ir::DType::F64;

const MaskedCase kCases[] = {{"gpt", kF32},
                             {"llama", kF64},
                             {"untied_sandwich", kF32},
                             {"decoder_hidden_states", kF32},
                             {"decoder_floats", kF32},
                             {"decoder_classifier", kF32},
                             {"bert", kF32},
                             {"pool_mean", kF64},
                             {"pool_last", kF32},
                             {"encoder_floats", kF32},
                             {"encoder_lm", kF32},
                             {"transformer", kF32},
                             {"two_vocabularies", kF32},
                             {"memory", kF64},
                             {"pair_of_floats", kF32},
                             {"no_residual", kF32},
                             {"packed", kF32},
                             {"packed_pair", kF64},
                             {"encoder_window", kF32},
                             {"mixtral", kF32},
                             {"experts_of_an_encoder", kF64},
                             {"experts_in_a_pair", kF32},
                             {"mlm_tied", kF32},
                             {"token_classifier", kF64},
                             {"regression_weighted", kF32},
                             {"tags_weighted", kF64},
                             {"bert_pretraining", kF32},
                             {"all_heads", kF32},
                             {"heads_on_the_encoder", kF32}};

constexpr int64_t kB = 5, kT = 5, kS = 5;

/// Holes anywhere; the last row of the mask has no token at all.
void set_holes(tools::Inputs& inputs, const char* name, uint64_t seed) {
  const auto mask = inputs.find(name);
  if (mask == inputs.end()) return;
  std::mt19937_64 random(seed);
  for (double& value : mask->second.data) value = random() % 3 != 0;
  double* last = mask->second.row(mask->second.rows() - 1);
  std::fill(last, last + mask->second.width(), 0.0);
}

/// Which rows have a token.
ir::Tensor row_mask(const ir::Tensor& mask) {
  ir::Tensor rows(ir::DType::U8, {mask.rows()});
  for (int64_t b = 0; b < mask.rows(); ++b) {
    const double* row = mask.row(b);
    rows[b] = std::any_of(row, row + mask.width(), [](double real) { return real != 0; });
  }
  return rows;
}

/// What came out as zero has no gradient to give, and what nothing was seen of no target to read.
void poison_outputs(tools::Inputs& inputs, const ir::HeadFacts& head, const ir::Tensor& mask) {
  for (const char* array : {"grad_output", "targets", "weights"}) {
    const auto found = inputs.find(head.named(array));
    if (found == inputs.end()) continue;
    const double poison = found->second.dtype == ir::DType::I32 ? 1e9 : std::nan("");
    const int64_t width = found->second.elements() / mask.elements();
    for (int64_t i = 0; i < found->second.elements(); ++i) {
      if (mask[i / width] == 0) found->second[i] = poison;
    }
  }
}

class Masked : public testing::TestWithParam<MaskedCase> {
 protected:
  void SetUp() override {
    compiled_ = compile(case_named(GetParam().name).text, {.precision = GetParam().precision});
    session_ = std::make_unique<Session>(compiled_);
    inputs_ = tools::random_inputs(compiled_.joint, point_for(compiled_.joint, kB, kT, kS), 3, false);
  }

  Call call_with(tools::Inputs inputs) const {
    return {*session_, inputs, point_for(compiled_.joint, kB, kT, kS)};
  }

  /// Of the output's rows: the mask; a classifier answers for the sequences that have a token.
  static ir::Tensor output_mask(const tools::Inputs& inputs, const ir::HeadFacts& head) {
    const ir::Tensor& mask = inputs.at(head.source ? "src_mask" : "mask");
    return head.per_token ? mask : row_mask(mask);
  }

  void poison_is_not_read(const char* what, tools::Inputs inputs);
  void zeros_come_out(const tools::Inputs& inputs);
  void holes();
  void no_token_at_all();
  void no_target_counts();

  Compiled compiled_;
  std::unique_ptr<Session> session_;
  tools::Inputs inputs_;
};

void Masked::poison_is_not_read(const char* what, tools::Inputs inputs) {
  const Call harmless = call_with(inputs);
  const Results expected = session_->everything(harmless, harmless.batch.grad_output, false);
  poison_masked(inputs);
  for (const ir::HeadFacts& head : session_->heads()) {
    if (inputs.count("mask")) poison_outputs(inputs, head, output_mask(inputs, head));
  }
  const Call poisoned = call_with(inputs);
  EXPECT_EQ(differences(session_->everything(poisoned, poisoned.batch.grad_output, false), expected), "")
      << what;
  for (const auto& [name, bytes] : expected) {
    if (name.starts_with("loss") || name == "train mean" || name == "step norm") continue;
    for (const double value : numbers(*session_, bytes))
      ASSERT_TRUE(std::isfinite(value)) << what << ": " << name;
  }
}

void Masked::zeros_come_out(const tools::Inputs& inputs) {
  const Call call = call_with(inputs);
  const Results results = session_->everything(call, call.batch.grad_output, false);
  const auto check = [&](const std::string& name, const ir::Tensor& mask) {
    const auto found = results.find(name);
    if (found == results.end()) return;
    const std::vector<double> values = numbers(*session_, found->second);
    const size_t width = values.size() / static_cast<size_t>(mask.elements());
    size_t others = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool real = mask[static_cast<int64_t>(i / width)] != 0;
      EXPECT_TRUE(real || values[i] == 0) << name << " at " << i / width << ": " << values[i];
      others += real && values[i] != 0;
    }
    EXPECT_GT(others, 0u) << name;
  };
  if (inputs.count("mask")) {
    for (const ir::HeadFacts& head : session_->heads()) {
      check(head.named("infer"), output_mask(inputs, head));
      check(head.named("logprobs"), output_mask(inputs, head));
    }
    check("last", row_mask(inputs.at("mask")));
    check("vjp grad_x", inputs.at("mask"));
    check("vjp grad_tgt", inputs.at("mask"));
  }
  if (inputs.count("src_mask")) {
    check("vjp grad_src", inputs.at("src_mask"));
    check("vjp grad_memory", inputs.at("src_mask"));
  }
}

void Masked::holes() {
  tools::Inputs inputs = inputs_;
  set_holes(inputs, "mask", 1);
  poison_is_not_read("holes", inputs);
  zeros_come_out(inputs);
  set_holes(inputs, "src_mask", 2);
  poison_is_not_read("holes on both sides", inputs);
  zeros_come_out(inputs);
  set_mask(inputs, "mask", {5, 1, 0, 3, 2});
  set_mask(inputs, "src_mask", {1, 0, 0, 5, 4});
  poison_is_not_read("padding", inputs);
  zeros_come_out(inputs);
}

void Masked::no_token_at_all() {
  tools::Inputs inputs = inputs_;
  set_mask(inputs, "mask", {0, 0, 0, 0, 0});
  set_mask(inputs, "src_mask", {0, 0, 0, 0, 0});
  poison_is_not_read("no token", inputs);
  const Call call = call_with(inputs);
  const Results results = session_->everything(call, call.batch.grad_output, false);
  for (const auto& [name, bytes] : results) {
    const bool of_call = name.starts_with("infer") || name == "last" || name.starts_with("logprobs") ||
                         name.starts_with("vjp") || name == "train gradients";
    if (!of_call) continue;
    for (const double value : numbers(*session_, bytes)) ASSERT_EQ(value, 0) << name;
  }
  if (!compiled_.has("train")) return;
  EXPECT_EQ(session_->backward(call), 0);
}

void Masked::no_target_counts() {
  if (!compiled_.has("train")) return;
  tools::Inputs inputs = inputs_;
  for (const ir::HeadFacts& head : session_->heads()) {
    if (!head.has_loss()) continue;
    const auto weights = inputs.find(head.named("weights"));
    ASSERT_TRUE(head.has_class_targets() || weights != inputs.end()) << "numbers count unless they weigh nothing";
    if (weights != inputs.end()) {
      std::fill(weights->second.data.begin(), weights->second.data.end(), 0.0);
    } else {
      for (double& target : inputs.at(head.named("targets")).data) target = static_cast<double>(head.ignore_index);
    }
  }
  const Call call = call_with(inputs);
  const Results results = session_->everything(call, call.batch.grad_output, false);
  for (const double value : numbers(*session_, results.at("train gradients"))) ASSERT_EQ(value, 0);
  for (const auto& [name, bytes] : results) {
    if (!name.starts_with("logprobs")) continue;
    for (const double value : numbers(*session_, bytes)) ASSERT_EQ(value, 0) << name;
  }
  EXPECT_EQ(session_->backward(call), 0);
  EXPECT_EQ(session_->loss(call), 0);

  // Accumulated, it counts nothing, and a step then does nothing at all.
  session_->start_over();
  double sum = 1, count = 1;
  session_->check(session_->api.accumulate(session_->session, &call.get(), &sum, &count));
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(count, 0);
  const Results before = session_->state();
  EXPECT_EQ(session_->step(), 0);
  EXPECT_EQ(differences(session_->state(), before), "");
}

TEST_P(Masked, PositionsAreNeverRead) {
  ASSERT_TRUE(session_->info.inputs & (TC_INPUT_MASK | TC_INPUT_SRC_MASK));
  holes();
  no_token_at_all();
  no_target_counts();
}

INSTANTIATE_TEST_SUITE_P(Models, Masked, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tfc::models
