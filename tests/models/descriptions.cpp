#include "models/descriptions.h"

#include <stdexcept>

namespace tfc::models {

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> joined;
    for (const auto& part :
         {decoder_cases(), encoder_cases(), pair_cases(), block_cases(), training_cases(),
          dropout_cases(), attention_cases(), moe_cases(),
          vision_cases(), sharing_cases(), head_cases(), tap_cases(), edit_cases()}) {
      joined.insert(joined.end(), part.begin(), part.end());
    }
    return joined;
  }();
  return all;
}

const Case& case_named(const std::string& name) {
  for (const Case& model : cases()) {
    if (model.name == name) return model;
  }
  throw std::out_of_range(name);
}

}  // namespace tfc::models
