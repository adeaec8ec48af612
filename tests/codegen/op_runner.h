// Runs one operation as a generated library would, lowering, kernels and all, and as the interpreter does.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interpreter.h"
#include "ir/module.h"
#include "jit.h"

namespace tfc::test {

struct OpCase {
  ir::OpKind op;
  std::vector<ir::Tensor> operands;  // an absent one has no shape and no data: OpCase::absent()
  ir::Attributes attributes;
  ir::DType real = ir::DType::F32;
  ir::Module module;  // adamw: its parameters
  /// Unused columns after each row of real operands and results of rank 3, as in views; `contiguous` lists
  /// operand slots, and results as 100 + index, that never are views.
  int64_t gap = 0;
  std::set<int> contiguous;
  std::set<uint32_t> unused;  // results that nobody reads
  int optimisation = 2;

  static ir::Tensor absent() {
    ir::Tensor nothing;
    nothing.shape = {-1};
    return nothing;
  }
};

/// Results of the compiled operation, one after the other. Donated operands are results in place.
std::vector<ir::Tensor> run_compiled(const OpCase& c, const std::string& level,
                                     TaskOrder order = TaskOrder::Together);

/// Results by the interpreter. Real operands are first rounded to the case's type.
std::vector<ir::Tensor> run_interpreted(const OpCase& c);

/// Runs at every level this machine has, together and backwards, plain and as views, and compares with the
/// interpreter: greatest difference relative to the greatest magnitude of the result. The orders must give
/// the same bits.
void expect_as_interpreted(OpCase c, double tolerance_f32, double tolerance_f64);

/// Uniform in [low, high), from a fixed seed.
ir::Tensor random_tensor(std::vector<int64_t> shape, unsigned seed, double low = -1, double high = 1);
ir::Tensor integer_tensor(ir::DType dtype, std::vector<int64_t> shape, std::vector<double> values);

}  // namespace tfc::test
