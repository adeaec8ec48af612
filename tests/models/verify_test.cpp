// What `transformerc verify` does, on models that together have every choice of the language: every entry of
// the compiled library against the float64 interpreter, the interpreter's gradients against finite
// differences, decoding and threads to the bit. Sizes leave a remainder against every vector and tile.
#include <gtest/gtest.h>

#include "models/verified.h"

namespace tfc::models {
namespace {

class Verify : public testing::TestWithParam<size_t> {};

/// Levels and precisions take turns: nine models in a row see each pair of them.
TEST_P(Verify, Model) {
  const size_t number = GetParam();
  const std::string level = std::string("x86-64-v") + "234"[number % 3];
  verify(cases()[number], {.optimisation = number % 7 == 0 ? 0 : 1,
                           .precision = number % 2 ? ir::DType::F32 : ir::DType::F64,
                           .cpu = level});
}

INSTANTIATE_TEST_SUITE_P(All, Verify, testing::Range(size_t{0}, cases().size()),
                         [](const auto& info) { return cases()[info.param].name; });

/// One decoder and one encoder-decoder at every level in both precisions.
class Levels : public testing::TestWithParam<std::string> {};

TEST_P(Levels, BothPrecisions) {
  for (const ir::DType precision : {ir::DType::F32, ir::DType::F64}) {
    for (const char* name : {"gpt", "transformer"}) {
      verify(case_named(name), {.precision = precision, .cpu = GetParam()});
      if (IsSkipped()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(X86, Levels, testing::Values("x86-64-v2", "x86-64-v3", "x86-64-v4"),
                         [](const auto& info) { return info.param.substr(7); });

}  // namespace
}  // namespace tfc::models
