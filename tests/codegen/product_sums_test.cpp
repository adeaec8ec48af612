// What is added after products: column sums, and the parts of a long reduction, against plain loops in double.
#include <gtest/gtest.h>

#include "product_cases.h"

namespace tfc::test {
namespace {

class ProductSums : public testing::TestWithParam<std::string> {};

template <class Part>
void check_sum_of_parts(const std::string& level) {
  const int64_t elements = 77, count = 3;
  Matrix<Part> parts(count, elements);
  Matrix<float> out(1, elements);
  parts.fill(5), out.fill(6);
  const Matrix<float> before = out;
  const JitKernel& add = kernel("add_parts", {{"f", std::string("f32")}, {"wide", sizeof(Part) == 8}}, level);
  for (int64_t accumulate : {0, 1}) {
    out = before;
    add.run({out.data, parts.data, elements, count, elements, accumulate, int64_t{3}}, 3, 0,
            TaskOrder::Backward);
    for (int64_t i = 0; i < elements; ++i) {
      const Part start = accumulate ? Part(before.at(0, i)) : Part(0);
      ASSERT_EQ(out.at(0, i), float(((start + parts.at(0, i)) + parts.at(1, i)) + parts.at(2, i)));
    }
  }
}

TEST_P(ProductSums, SumOfParts) {
  check_sum_of_parts<float>(GetParam());
  check_sum_of_parts<double>(GetParam());
}

/// In parts the sums are doubles, one row for each part; else one row of T.
template <class T>
void check_column_sum(const std::string& level, int64_t rows, int64_t columns, int64_t parts,
                      bool accumulate) {
  SCOPED_TRACE("rows " + std::to_string(rows) + " columns " + std::to_string(columns));
  Matrix<T> dy(rows, columns, 5), out(1, columns);
  Matrix<double> partial(parts, columns);
  dy.fill(7), out.fill(8);
  const Matrix<T> before = out;
  const int64_t stripes = (columns + 63) / 64;
  const JitKernel& sum = kernel("column_sum", {{"f", real_name<T>()}, {"parts", parts > 1}}, level);
  const SlotValue target = parts > 1 ? SlotValue(partial.data) : SlotValue(out.data);
  sum.run({target, dy.data, rows, columns, dy.stride, accumulate ? 1 : 0, stripes, parts, 0, 0},
          stripes * parts, 0, TaskOrder::Backward);
  for (int64_t p = 0; p < parts; ++p) {
    for (int64_t c = 0; c < columns; ++c) {
      double expected = accumulate ? double(before.at(0, c)) : 0.0;
      for (int64_t r = rows * p / parts; r < rows * (p + 1) / parts; ++r) expected += dy.at(r, c);
      if (parts > 1) {
        ASSERT_NEAR(partial.at(p, c), expected, 1e-12) << p << ", " << c;
      } else {
        ASSERT_NEAR(out.at(0, c), expected, sizeof(T) == 4 ? 2e-6 : 1e-12) << c;
      }
    }
  }
}

TEST_P(ProductSums, ColumnSums) {
  for (int64_t rows : {1, 5, 63, 64, 65, 200}) {
    for (int64_t columns : {1, 5, 15, 16, 17, 63, 64, 65, 100, 130}) {
      check_column_sum<float>(GetParam(), rows, columns, 1, false);
      check_column_sum<float>(GetParam(), rows, columns, 1, true);
      check_column_sum<float>(GetParam(), rows, columns, 3, false);
      check_column_sum<double>(GetParam(), rows, columns, 1, true);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ProductSums, testing::ValuesIn(runnable_levels()),
                         [](const auto& info) { return "v" + info.param.substr(8); });

}  // namespace
}  // namespace tfc::test
