// Edits against the interpreter, and to the bit where nothing is done.
#include <gtest/gtest.h>

#include <limits>

#include "op_runner.h"

namespace tfc::test {
namespace {

using ir::DType;
using ir::OpKind;
using ir::Tensor;

const std::vector<std::vector<int64_t>> kShapes = {
    {7}, {3, 5}, {1, 1, 1}, {2, 3, 5}, {1, 5, 16}, {3, 1, 17}, {2, 3, 2, 5}, {2, 2, 3, 33}, {1, 300, 33}};

/// 0, 1 and 2 in a pattern of no period that a dimension has.
Tensor some_how(const std::vector<int64_t>& shape) {
  Tensor how(DType::U8, shape);
  for (int64_t i = 0; i < how.elements(); ++i) how[i] = static_cast<double>((i + i / 3 + i / 7) % 3);
  return how;
}

Tensor some_mask(const std::vector<int64_t>& shape) {
  Tensor mask(DType::U8, {shape[0], shape[1]});
  for (int64_t i = 0; i < mask.elements(); ++i) mask[i] = i % 3 != 1;
  return mask;
}

OpCase edit_case(const std::vector<int64_t>& shape, bool masked = false) {
  OpCase c{OpKind::Edit, {random_tensor(shape, 1), random_tensor(shape, 2), some_how(shape)}, {}};
  if (masked) c.operands.push_back(some_mask(shape));
  c.contiguous = {1};
  return c;
}

OpCase gradient_case(const std::vector<int64_t>& shape, bool masked = false) {
  OpCase c{OpKind::EditGrad, {random_tensor(shape, 1), some_how(shape)}, {}};
  if (masked) c.operands.push_back(some_mask(shape));
  return c;
}

TEST(Edit, ReplacesAndAdds) {
  for (const auto& shape : kShapes) {
    for (const bool masked : {false, true}) {
      if (masked && shape.size() != 3) continue;
      expect_as_interpreted(edit_case(shape, masked), 1e-7, 1e-15);
      expect_as_interpreted(gradient_case(shape, masked), 0, 0);
    }
  }
}

TEST(Edit, NothingOfWhatIsReplacedAndOfMaskedRowsEdits) {
  OpCase c = edit_case({1, 3, 17}, true);
  for (int64_t i = 0; i < 3 * 17; ++i) {
    if (c.operands[2][i] == 1 && c.operands[3][i / 17] != 0)
      c.operands[0][i] = std::numeric_limits<double>::quiet_NaN();
    if (c.operands[2][i] == 0 || c.operands[3][i / 17] == 0)
      c.operands[1][i] = std::numeric_limits<double>::quiet_NaN();
  }
  for (const std::string& level : runnable_levels()) {
    for (const double y : run_compiled(c, level)[0].data) EXPECT_EQ(y, y) << level;
  }
}

}  // namespace
}  // namespace tfc::test
