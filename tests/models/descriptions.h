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

const std::vector<Case>& cases();
const Case& case_named(const std::string& name);

}  // namespace tfc::models
