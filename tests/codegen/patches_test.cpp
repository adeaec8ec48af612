// Images as patches, the token before them, and factors of columns, against the interpreter.
#include <gtest/gtest.h>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::OpKind;

TEST(Patches, SquaresOfEverySizeAndBack) {
  for (const int64_t size : {1, 3, 4, 15, 16, 17}) {
    for (const std::vector<int64_t>& counts : {std::vector<int64_t>{1, 1, 1, 1}, {2, 3, 2, 3}, {3, 1, 3, 1}}) {
      const int64_t B = counts[0], channels = counts[1], height = counts[2] * size, width = counts[3] * size;
      const auto image = random_tensor({B, channels, height, width}, 1);
      expect_as_interpreted({OpKind::Patches, {image}, {{"size", size}}}, 0, 0);
      const auto dpatches = random_tensor({B, counts[2] * counts[3], channels * size * size}, 2);
      const ir::Attributes sizes{{"size", size}, {"image", std::vector<int64_t>{channels, height, width}}};
      expect_as_interpreted({OpKind::PatchesGrad, {dpatches}, sizes}, 0, 0);
    }
  }
}

TEST(Patches, TokenBeforeTheRowsAndItsGradient) {
  for (const int64_t D : {1, 3, 15, 16, 17, 33, 530}) {
    for (const int64_t T : {2, 5, 40}) {
      const auto x = random_tensor({3, T - 1, D}, 1), token = random_tensor({D}, 2), rows = random_tensor({T, D}, 3);
      expect_as_interpreted({OpKind::Prepend, {x, token, rows}, {}}, 1e-7, 1e-15);
      expect_as_interpreted({OpKind::Prepend, {x, token}, {}}, 0, 0);
      OpCase grad{OpKind::PrependGrad, {random_tensor({3, T, D}, 4)}, {}};
      expect_as_interpreted(grad, 1e-7, 1e-15);
      for (const uint32_t unused : {0u, 1u}) {
        grad.unused = {unused};
        expect_as_interpreted(grad, 1e-7, 1e-15);
      }
    }
  }
}

TEST(LayerScale, FactorsOfColumnsAndTheirGradient) {
  for (const int64_t D : {1, 3, 15, 16, 17, 33, 530}) {
    for (const int64_t T : {1, 5, 70}) {
      const auto x = random_tensor({2, T, D}, 1), gamma = random_tensor({D}, 2), dy = random_tensor({2, T, D}, 3);
      expect_as_interpreted({OpKind::ScaleColumns, {x, gamma}, {}}, 1e-7, 1e-15);
      OpCase grad{OpKind::ScaleColumnsGrad, {dy, x, gamma}, {}};
      expect_as_interpreted(grad, 1e-6, 1e-14);
      for (const uint32_t unused : {0u, 1u}) {
        grad.unused = {unused};
        expect_as_interpreted(grad, 1e-6, 1e-14);
      }
    }
  }
}

}  // namespace
}  // namespace tfc::test
