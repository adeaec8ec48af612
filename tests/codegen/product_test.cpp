// Matrix products against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "product_cases.h"

namespace tfc::test {
namespace {

template <class T>
void check(const Case& test) {
  SCOPED_TRACE(test.text() + " " + real_name<T>());
  Operands<T> o(test);
  const Operands<T> before = o;
  multiply(test, o, o.c.data.data(), test.m, o.a.data.data());
  const double tolerance = (sizeof(T) == 4 ? 1e-6 : 1e-14) * double(test.k + 2);
  double worst = 0;
  for (int64_t i = 0; i < test.m; ++i) {
    for (int64_t j = 0; j < test.n; ++j) {
      worst = std::max(worst, std::abs(o.c.at(i, j) - expected(test, before, i, j, 0, test.k)));
      ASSERT_FALSE(std::isnan(o.c.at(i, j))) << "at " << i << ", " << j;
    }
    for (int64_t j = test.n; j < o.c.stride; ++j) ASSERT_EQ(o.c.at(i, j), T(77)) << "wrote past the row";
  }
  EXPECT_LT(worst, tolerance);
}

const std::vector<int64_t> kSizes = {1, 3, 5, 13, 14, 15, 16, 17, 31, 32, 33, 63, 100};

class ProductTest : public testing::TestWithParam<std::string> {};

TEST_P(ProductTest, AllSmallShapes) {
  for (const char* form : {"nt", "nn", "tn"}) {
    for (int64_t m : kSizes) {
      for (int64_t n : kSizes) {
        const int64_t k = kSizes[static_cast<size_t>((m * 7 + n * 3) % 13)];
        check<float>({form, GetParam(), m, n, k});
        check<double>({form, GetParam(), m, n, k});
      }
    }
  }
}

TEST_P(ProductTest, AllDepths) {
  for (const char* form : {"nt", "nn", "tn"}) {
    for (int64_t k = 1; k <= 70; ++k) {
      check<float>({form, GetParam(), 17, 33, k});
      check<double>({form, GetParam(), 9, 21, k});
      check<float>({form, GetParam(), 1 + k % 4, 33, k});  // past the panels
      check<double>({form, GetParam(), 1 + k % 4, 21, k});
    }
  }
}

TEST_P(ProductTest, ViewsBlocksBiasAccumulation) {
  for (const char* form : {"nt", "nn", "tn"}) {
    for (int64_t m : {1, 14, 29, 100}) {
      for (int64_t n : {5, 32, 63, 100, 200}) {
        for (TaskOrder order : {TaskOrder::Together, TaskOrder::Forward, TaskOrder::Backward}) {
          Case test{form, GetParam(), m, n, 63};
          test.row_blocks = (m + 13) / 14, test.padding = 3, test.order = order;
          test.bias = true;
          check<float>(test);
          test.bias = false, test.accumulate = true;
          check<float>(test);
          check<double>(test);
        }
      }
    }
  }
}

// More strips of B than tall tiles take at a time.
TEST_P(ProductTest, WideGradients) {
  for (int64_t n : {383, 385, 800}) {
    for (int64_t rows_apart : {0, 1536}) {  // B in place, and packed
      Case test{"tn", GetParam(), 29, n, 70};
      test.columns = 768, test.padding = rows_apart == 0 ? 0 : rows_apart - n;
      check<float>(test);
      test.accumulate = true;
      check<double>(test);
    }
  }
}

// Rows a multiple of 2 KB apart share sets of the cache and are copied first.
TEST_P(ProductTest, RowsFarApart) {
  for (const char* form : {"nn", "tn"}) {
    for (int64_t n : {40, 64, 100}) {
      Case test{form, GetParam(), 33, n, 70};
      test.padding = 512 - n;
      check<float>(test);
      check<double>(test);
    }
  }
  for (const char* form : {"nt", "nn"}) {
    check<float>({form, GetParam(), 33, 40, 512});
    check<float>({form, GetParam(), 5, 40, 1024});
    check<double>({form, GetParam(), 33, 40, 512});
  }
}

// A row alone, in any batch and in any block of rows has the same bits.
template <typename Real>
void check_blocks_of_rows(Case test) {
  Operands<Real> o(test);
  multiply(test, o, o.c.data.data(), test.m, o.a.data.data());
  for (int64_t row_blocks : {2, 5, 16, 20, 31, 61}) {
    Operands<Real> again(test);
    test.row_blocks = row_blocks;
    multiply(test, again, again.c.data.data(), test.m, again.a.data.data());
    EXPECT_EQ(o.c.data, again.c.data) << test.text();
  }
}

TEST_P(ProductTest, RowsDoNotDependOnTheBatch) {
  for (const char* form : {"nt", "nn"}) {
    for (int64_t rows_apart : {0, 449}) {  // in place, and copied
      Case test{form, GetParam(), 61, 45, 63};
      test.bias = true, test.padding = rows_apart;
      check_blocks_of_rows<float>(test);
      check_blocks_of_rows<double>(test);
      Case adds = test;
      adds.bias = false, adds.accumulate = true;
      check_blocks_of_rows<float>(adds);
      Operands<float> o(test);
      multiply(test, o, o.c.data.data(), test.m, o.a.data.data());
      for (int64_t row : {0, 1, 13, 14, 37, 60}) {
        std::vector<float> alone(static_cast<size_t>(o.c.stride));
        multiply(test, o, alone.data(), 1, &o.a.at(row, 0));
        for (int64_t j = 0; j < test.n; ++j)
          ASSERT_EQ(alone[static_cast<size_t>(j)], o.c.at(row, j)) << test.text();
      }
    }
  }
}

// out = x + 0.5 * relu(C), with C kept or overwritten.
TEST_P(ProductTest, ActivationAndResidual) {
  for (int64_t m : {1, 20}) {
    for (int64_t n : {17, 40, 100}) {
      Case test{"nt", GetParam(), m, n, 40};
      Operands<float> o(test);
      Matrix<float> x(m, n, 2), out(m, n, 1);
      x.fill(9);
      const int64_t column_blocks = (n + kColumns - 1) / kColumns;
      const ir::Attributes attributes = {
          {"f", std::string("f32")}, {"form", std::string("nt")},         {"depth", kDepth},
          {"columns", kColumns},     {"activation", std::string("relu")}, {"residual", 0.5}};
      const auto run = [&](Matrix<float>& c, Matrix<float>& to) {
        kernel("product", attributes, GetParam())
            .run({c.data, o.a.data, o.b.data, nullptr, m, n, test.k, c.stride, o.a.stride, o.b.stride, 0, 1,
                  column_blocks, 1, 0, to.data, to.stride, x.data, x.stride},
                 column_blocks, scratch_bytes(sizeof(float)));
      };
      run(o.c, out);
      Matrix<float> alone(m, n);
      run(alone, alone);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_NEAR(o.c.at(i, j), expected(test, o, i, j, 0, test.k), 1e-5);
          ASSERT_EQ(out.at(i, j), x.at(i, j) + 0.5f * std::max(0.0f, o.c.at(i, j)));
          ASSERT_EQ(alone.at(i, j), out.at(i, j));
        }
        ASSERT_EQ(out.data[static_cast<size_t>(i * out.stride + n)], 77.0f) << "wrote past the row";
      }
    }
  }
}

// out = x + 0.5 * ((a + b) + gamma * C): LayerScale's factors, and the branches before this one.
TEST_P(ProductTest, FactorsOfColumnsAndOtherBranches) {
  for (int64_t m : {1, 20}) {
    for (int64_t n : {1, 17, 100}) {
      Case test{"nt", GetParam(), m, n, 40};
      Operands<float> o(test);
      Matrix<float> x(m, n, 2), out(m, n, 1), gamma(1, n), a(m, n, 3), b(m, n);
      x.fill(9), gamma.fill(10), a.fill(11), b.fill(12);
      const int64_t column_blocks = (n + kColumns - 1) / kColumns;
      const ir::Attributes attributes = {{"f", std::string("f32")}, {"form", std::string("nt")},
                                         {"depth", kDepth},         {"columns", kColumns},
                                         {"residual", 0.5},         {"gamma", true},
                                         {"others", int64_t{2}}};
      kernel("product", attributes, GetParam())
          .run({o.c.data,      o.a.data,   o.b.data,   nullptr,    m,          n,
                test.k,        o.c.stride, o.a.stride, o.b.stride, 0,          1,
                column_blocks, 1,          0,          out.data,   out.stride, x.data,
                x.stride,      gamma.data, a.data,     a.stride,   b.data,     b.stride},
               column_blocks, scratch_bytes(sizeof(float)));
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const float sum = (a.at(i, j) + b.at(i, j)) + gamma.at(0, j) * o.c.at(i, j);
          ASSERT_EQ(out.at(i, j), x.at(i, j) + 0.5f * sum) << test.text();
        }
        ASSERT_EQ(out.data[static_cast<size_t>(i * out.stride + n)], 77.0f) << "wrote past the row";
      }
    }
  }
}

// out = relu'(x) * C, and relu(x) beside it, in x's place too.
TEST_P(ProductTest, SlopeAndWhatIsActivated) {
  for (int64_t m : {1, 20}) {
    for (int64_t n : {1, 17, 100}) {
      Case test{"nn", GetParam(), m, n, 40};
      Operands<float> o(test);
      Matrix<float> x(m, n, 2), out(m, n, 1), activated(m, n, 3);
      x.fill(9);
      const Matrix<float> before = x;
      const int64_t column_blocks = (n + kColumns - 1) / kColumns;
      const ir::Attributes attributes = {{"f", std::string("f32")}, {"form", std::string("nn")},
                                         {"depth", kDepth},         {"columns", kColumns},
                                         {"slope", std::string("relu")}, {"activated", true}};
      const auto run = [&](Matrix<float>& to) {
        kernel("product", attributes, GetParam())
            .run({out.data, o.a.data, o.b.data, nullptr, m, n, test.k, out.stride, o.a.stride, o.b.stride, 0, 1,
                  column_blocks, 1, 0, out.data, out.stride, x.data, x.stride, to.data, to.stride},
                 column_blocks, scratch_bytes(sizeof(float)));
      };
      run(activated);
      const Matrix<float> first = out;
      run(x);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const double slope = before.at(i, j) > 0 ? 1 : 0;
          ASSERT_NEAR(out.at(i, j), slope * expected(test, o, i, j, 0, test.k), 1e-5) << test.text();
          ASSERT_EQ(out.at(i, j), first.at(i, j));
          ASSERT_EQ(activated.at(i, j), std::max(0.0f, before.at(i, j)));
          ASSERT_EQ(x.at(i, j), activated.at(i, j));
        }
        ASSERT_EQ(activated.data[static_cast<size_t>(i * activated.stride + n)], 77.0f) << "wrote past the row";
      }
    }
  }
}

bool every_third(size_t row) { return row >= 20 && row % 3 == 0; }
bool whole_blocks(size_t row) { return row < 2 * kDepth || row % 5 == 0; }

/// Of the rows those are real that `is_real` names. Forms nt and nn: the others of C are left where a whole tile has
/// none, or become zeros. Form tn: the sums are over the real rows, and what stands in the others is not read.
template <class T>
void check_masked(const Case& test, bool fills, bool (*is_real)(size_t row) = every_third) {
  SCOPED_TRACE(test.text() + " " + real_name<T>());
  const bool sums = test.form == "tn";
  Operands<T> o(test);
  const Operands<T> before = o;
  std::vector<uint8_t> mask(static_cast<size_t>(sums ? test.k : test.m));
  for (size_t row = 0; row < mask.size(); ++row) mask[row] = is_real(row);
  for (int64_t row = 0; row < test.k && sums; ++row) {
    if (mask[static_cast<size_t>(row)]) continue;
    for (int64_t j = 0; j < test.m; ++j) o.a.at(row, j) = std::numeric_limits<T>::quiet_NaN();
    for (int64_t j = 0; j < test.n; ++j) o.b.at(row, j) = std::numeric_limits<T>::quiet_NaN();
  }
  ir::Attributes attributes = {
      {"f", real_name<T>()}, {"form", test.form}, {"depth", kDepth}, {"columns", kColumns}, {"mask", true}};
  if (fills) attributes.set("fill", true);
  const int64_t column_blocks = (test.n + kColumns - 1) / kColumns;
  kernel("product", attributes, test.level)
      .run({o.c.data, o.a.data, o.b.data, nullptr, test.m, test.n, test.k, o.c.stride, o.a.stride, o.b.stride, 0,
            test.row_blocks, column_blocks, 1, 0, mask.data()},
           test.row_blocks * column_blocks, scratch_bytes(sizeof(T), sums ? test.m : 0));
  for (int64_t i = 0; i < test.m; ++i) {
    for (int64_t j = 0; j < test.n; ++j) {
      double value = sums ? 0 : expected(test, before, i, j, 0, test.k);
      for (int64_t k = 0; sums && k < test.k; ++k) {
        if (mask[static_cast<size_t>(k)]) value += double(before.a.at(k, i)) * double(before.b.at(k, j));
      }
      const bool real = sums || mask[static_cast<size_t>(i)];
      const bool skipped = !sums && i < 12;  // in a tile of its own with others like it
      if (real) {
        ASSERT_NEAR(o.c.at(i, j), value, 1e-4) << i << ", " << j;
      }
      if (skipped) {
        ASSERT_EQ(o.c.at(i, j), fills ? T(0) : before.c.at(i, j)) << i << ", " << j;
      }
    }
  }
}

TEST_P(ProductTest, RowsThatAMaskLeavesOut) {
  for (int64_t n : {1, 17, 100}) {
    for (int64_t size : {21, 50}) {
      for (const char* form : {"nt", "nn"}) {
        for (bool fills : {false, true}) check_masked<float>({form, GetParam(), size, n, 40}, fills);
      }
      for (int64_t k : {21, 70, 300}) {
        check_masked<float>({"tn", GetParam(), size, n, k}, false);
        check_masked<double>({"tn", GetParam(), size, n, k}, false);
        check_masked<float>({"tn", GetParam(), size, n, k}, false, whole_blocks);
      }
      check_masked<float>({"tn", GetParam(), size, n, 15}, false);  // no row at all: zeros
    }
  }
}

TEST_P(ProductTest, PartsOfALongReduction) {
  Case test{"tn", GetParam(), 20, 40, 300};
  test.parts = 3;
  Operands<float> o(test);
  std::vector<float> parts(static_cast<size_t>(3 * test.m * test.n));
  multiply(test, o, parts.data(), test.m, o.a.data.data());
  for (int64_t p = 0; p < 3; ++p) {
    for (int64_t i = 0; i < test.m; ++i) {
      for (int64_t j = 0; j < test.n; ++j) {
        ASSERT_NEAR(parts[static_cast<size_t>((p * test.m + i) * test.n + j)],
                    expected(test, o, i, j, p * 100, (p + 1) * 100), 1e-4);
      }
    }
  }
}

// The tiles' loops keep all accumulators in registers: nothing moves between a vector register and the stack
// there.
TEST_P(ProductTest, TilesDoNotSpill) {
  const std::string& text =
      kernel(
          "product",
          {{"f", std::string("f32")}, {"form", std::string("nt")}, {"depth", kDepth}, {"columns", kColumns}},
          GetParam())
          .assembly();
  const std::string height = GetParam() == "x86-64-v4" ? "14" : "6";
  const std::string name = "tc.tile_rows." + height + ".f32";
  const size_t begin = text.find("\n" + name + ":"), end = text.find(".size\t" + name, begin);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  int multiplications = 0, stack_moves = 0;
  for (size_t at = begin; at < end;) {
    const size_t next = text.find('\n', at + 1);
    const std::string line = text.substr(at, next - at);
    const bool vector = line.find("mm") != std::string::npos;
    if (vector && (line.find("fmadd") != std::string::npos || line.find("mulps") != std::string::npos))
      ++multiplications;
    if (vector && line.find("(%rsp)") != std::string::npos) ++stack_moves;
    at = next;
  }
  EXPECT_GE(multiplications, 2 * std::stoi(height));
  EXPECT_EQ(stack_moves, 0);
}

INSTANTIATE_TEST_SUITE_P(Levels, ProductTest, testing::ValuesIn(runnable_levels()),
                         [](const auto& info) { return "v" + info.param.substr(8); });

}  // namespace
}  // namespace tfc::test
