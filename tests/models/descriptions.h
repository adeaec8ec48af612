// The models of these tests.
#pragma once

#include <string>
#include <vector>

namespace tfc::models {

struct Case {
  std::string name;
  int64_t B, T, S;  // where it is verified
  std::string text;
};

/// All of them, in this order.
const std::vector<Case>& cases();
std::vector<Case> decoder_cases();
std::vector<Case> encoder_cases();
std::vector<Case> pair_cases();
std::vector<Case> block_cases();
std::vector<Case> training_cases();
std::vector<Case> dropout_cases();
std::vector<Case> attention_cases();
std::vector<Case> moe_cases();
std::vector<Case> vision_cases();
std::vector<Case> sharing_cases();
std::vector<Case> head_cases();
std::vector<Case> tap_cases();
std::vector<Case> edit_cases();
const Case& case_named(const std::string& name);

}  // namespace tfc::models
