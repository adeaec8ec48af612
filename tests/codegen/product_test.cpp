// Matrix products, column sums and sums of parts against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "jit.h"

namespace tfc::test {
namespace {

constexpr int64_t kDepth = 32, kColumns = 64;  // a small k block, so that small sizes have several

/// As passes/lower/product_plan.cpp sizes it: what tiles fetch, what every row begins with, panels of B, a
/// tile's rows or columns of A; form tn: those of all `rows`, in tiles of six that take eight.
int64_t scratch_bytes(int64_t element_bytes, int64_t rows = 0) {
  const int64_t panels_b = kDepth * kColumns + 16 * 32, panel_a = 14 * (kDepth + 16);
  return 64 + (kColumns + panels_b + panel_a + kDepth * (rows + 5) / 6 * 8) * element_bytes;
}

template <class T>
struct Matrix {
  int64_t rows, columns, stride;
  std::vector<T> data;

  Matrix(int64_t r, int64_t c, int64_t padding = 0) : rows(r), columns(c), stride(c + padding) {
    data.assign(static_cast<size_t>(rows * stride), T(77));
  }
  T& at(int64_t r, int64_t c) { return data[static_cast<size_t>(r * stride + c)]; }
  T at(int64_t r, int64_t c) const { return data[static_cast<size_t>(r * stride + c)]; }

  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) at(r, c) = static_cast<T>(uniform(random));
    }
  }
};

template <class T>
std::string real_name() {
  return sizeof(T) == 4 ? "f32" : "f64";
}

/// Compiled kernels are kept: every test uses the same few.
const JitKernel& kernel(const std::string& family, ir::Attributes attributes, const std::string& level) {
  static std::map<std::string, std::unique_ptr<JitKernel>> known;
  const ir::KernelSpec spec{family, std::move(attributes)};
  auto& slot = known[level + spec.text()];
  if (!slot) slot = std::make_unique<JitKernel>(spec, target_of(level));
  return *slot;
}

struct Case {
  std::string form, level;
  int64_t m, n, k;
  int64_t row_blocks = 1, padding = 0, parts = 1;
  bool accumulate = false, bias = false;
  TaskOrder order = TaskOrder::Together;

  std::string text() const {
    return form + " " + level + " M=" + std::to_string(m) + " N=" + std::to_string(n) +
           " K=" + std::to_string(k) + " row blocks " + std::to_string(row_blocks) +
           (accumulate ? " accumulate" : "") + (bias ? " bias" : "");
  }
};

template <class T>
struct Operands {
  Matrix<T> a, b, c, bias;
  explicit Operands(const Case& test)
      : a(test.form == "tn" ? Matrix<T>(test.k, test.m, test.padding)
                            : Matrix<T>(test.m, test.k, test.padding)),
        b(test.form == "nt" ? Matrix<T>(test.n, test.k, test.padding)
                            : Matrix<T>(test.k, test.n, test.padding)),
        c(test.m, test.n, test.padding),
        bias(1, test.n) {
    a.fill(1), b.fill(2), c.fill(3), bias.fill(4);
  }
};

template <class T>
void multiply(const Case& test, Operands<T>& o, T* c, int64_t rows, const T* a) {
  const int64_t strips = (test.n + 31) / 32, column_blocks = (strips + kColumns / 32 - 1) / (kColumns / 32);
  const JitKernel& product = kernel(
      "product", {{"f", real_name<T>()}, {"form", test.form}, {"depth", kDepth}, {"columns", kColumns}},
      test.level);
  product.run({c, const_cast<T*>(a), o.b.data, test.bias ? o.bias.data.data() : nullptr, rows, test.n, test.k,
               o.c.stride, o.a.stride, o.b.stride, test.accumulate ? 1 : 0, test.row_blocks, column_blocks,
               test.parts, test.m * test.n},
              test.row_blocks * column_blocks * test.parts,
              scratch_bytes(sizeof(T), test.form == "tn" ? test.m : 0), test.order);
}

template <class T>
double expected(const Case& test, const Operands<T>& o, int64_t i, int64_t j, int64_t first, int64_t last) {
  double sum = test.accumulate ? double(o.c.at(i, j)) : test.bias ? double(o.bias.at(0, j)) : 0.0;
  for (int64_t k = first; k < last; ++k) {
    const double x = test.form == "tn" ? o.a.at(k, i) : o.a.at(i, k);
    const double w = test.form == "nt" ? o.b.at(j, k) : o.b.at(k, j);
    sum += x * w;
  }
  return sum;
}

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

/// Every third row is real, and of the first twenty none. Forms nt and nn: the others of C are left where a whole tile
/// has none, or become zeros. Form tn: the sums are over the real rows, and what stands in the others is not read.
template <class T>
void check_masked(const Case& test, bool fills) {
  SCOPED_TRACE(test.text() + " " + real_name<T>());
  const bool sums = test.form == "tn";
  Operands<T> o(test);
  const Operands<T> before = o;
  std::vector<uint8_t> mask(static_cast<size_t>(sums ? test.k : test.m));
  for (size_t row = 0; row < mask.size(); ++row) mask[row] = row >= 20 && row % 3 == 0;
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
      if (real) ASSERT_NEAR(o.c.at(i, j), value, 1e-4) << i << ", " << j;
      if (skipped) ASSERT_EQ(o.c.at(i, j), fills ? T(0) : before.c.at(i, j)) << i << ", " << j;
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

TEST_P(ProductTest, SumOfParts) {
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

TEST_P(ProductTest, ColumnSums) {
  for (int64_t rows : {1, 5, 63, 64, 65, 200}) {
    for (int64_t columns : {1, 5, 15, 16, 17, 63, 64, 65, 100, 130}) {
      check_column_sum<float>(GetParam(), rows, columns, 1, false);
      check_column_sum<float>(GetParam(), rows, columns, 1, true);
      check_column_sum<float>(GetParam(), rows, columns, 3, false);
      check_column_sum<double>(GetParam(), rows, columns, 1, true);
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
