// Cases of attention, forward and backward, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op_runner.h"

namespace tfc::test {

inline const double kInfinity = std::numeric_limits<double>::infinity(),
             kNaN = std::numeric_limits<double>::quiet_NaN();

struct Sizes {
  int64_t B, T, S, H, G, E;
};

inline ir::Attributes attributes(const Sizes& n, bool causal) {
  return {{"heads", n.H},
          {"kv_heads", n.G},
          {"head_dim", n.E},
          {"scale", 1 / std::sqrt(static_cast<double>(n.E))},
          {"causal", causal}};
}

inline OpCase forward_case(const Sizes& n, bool causal, ir::Tensor mask = OpCase::absent()) {
  OpCase c{ir::OpKind::Attention,
           {random_tensor({n.B, n.T, n.H * n.E}, 1, -2, 2), random_tensor({n.B, n.S, n.G * n.E}, 2, -2, 2),
            random_tensor({n.B, n.S, n.G * n.E}, 3), mask},
           attributes(n, causal)};
  c.contiguous = {101};  // lse
  return c;
}

/// The backward case of a forward one, with the interpreter's o and lse.
inline OpCase backward_case(OpCase forward) {
  forward.real = ir::DType::F64;
  const auto y = run_interpreted(forward);
  OpCase c{ir::OpKind::AttentionGrad,
           {random_tensor(forward.operands[0].shape, 5), forward.operands[0], forward.operands[1],
            forward.operands[2], y[0], y[1], forward.operands[3]},
           forward.attributes};
  for (size_t slot = 5; slot < forward.operands.size(); ++slot) c.operands.push_back(forward.operands[slot]);
  c.contiguous = {5};
  return c;
}

inline void expect_both_ways(const OpCase& forward) {
  expect_as_interpreted(forward, 3e-6, 1e-14);
  expect_as_interpreted(backward_case(forward), 2e-5, 1e-13);
}

/// Both ways -O0 gives the bits of -O2.
inline void expect_same_bits_unoptimised(const OpCase& forward) {
  for (const std::string& level : runnable_levels()) {
    for (OpCase c : {forward, backward_case(forward)}) {
      c.optimisation = 2;
      const auto fast = run_compiled(c, level);
      c.optimisation = 0;
      const auto plain = run_compiled(c, level);
      for (size_t i = 0; i < fast.size(); ++i) EXPECT_EQ(fast[i].data, plain[i].data) << level;
    }
  }
}

}  // namespace tfc::test
