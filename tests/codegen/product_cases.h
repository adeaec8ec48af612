// Operands of products and how a test runs their kernel.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "jit.h"

namespace tfc::test {

inline constexpr int64_t kDepth = 32, kColumns = 64;  // a small k block, so that small sizes have several

/// As passes/lower/product_plan.cpp sizes it: what tiles fetch, what every row begins with, a tile's rows or columns of
/// A, panels of B; form tn: those of A of all `rows`, in tiles of six that take eight.
inline int64_t scratch_bytes(int64_t element_bytes, int64_t rows = 0, int64_t columns = kColumns) {
  const int64_t panels_b = kDepth * columns + 16 * 32, panel_a = 16 * (kDepth + 16);
  return 64 + (columns + panels_b + panel_a + kDepth * (rows + 5) / 6 * 8) * element_bytes;
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
inline const JitKernel& kernel(const std::string& family, ir::Attributes attributes, const std::string& level) {
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
  int64_t columns = kColumns;  // most columns of a task

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
  const int64_t column_blocks = (test.n + test.columns - 1) / test.columns;
  const JitKernel& product = kernel(
      "product", {{"f", real_name<T>()}, {"form", test.form}, {"depth", kDepth}, {"columns", test.columns}},
      test.level);
  product.run({c, const_cast<T*>(a), o.b.data, test.bias ? o.bias.data.data() : nullptr, rows, test.n, test.k,
               o.c.stride, o.a.stride, o.b.stride, test.accumulate ? 1 : 0, test.row_blocks, column_blocks,
               test.parts, test.m * test.n},
              test.row_blocks * column_blocks * test.parts,
              scratch_bytes(sizeof(T), test.form == "tn" ? test.m : 0, test.columns), test.order);
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

}  // namespace tfc::test
