// Kernels that do two operations in one trip: the same bits as one after the other.
#include <gtest/gtest.h>

#include <random>

#include "jit.h"

namespace tfc::test {
namespace {

using Row = std::vector<float>;

Row random_row(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Row row(static_cast<size_t>(n));
  for (float& value : row) value = normal(random);
  return row;
}

JitKernel kernel(const std::string& family, ir::Attributes attributes, const std::string& level) {
  attributes.set("f", std::string("f32"));
  return JitKernel({family, std::move(attributes)}, target_of(level));
}

TEST(FusedRows, ResidualThenNorm) {
  constexpr int64_t kRows = 11, kTasks = 3;
  for (const std::string& level : runnable_levels()) {
    for (int64_t D : {1, 17, 48}) {
      for (int64_t added : {1, 2}) {
        const double scale = added == 1 ? 1.0 : 0.5;
        Row x = random_row(kRows * D, 1), a = random_row(kRows * D, 2), b = random_row(kRows * D, 3);
        Row gamma = random_row(D, 4), beta = random_row(D, 5);
        ir::Attributes settings{{"kind", std::string("layer")},
                                {"width", D},
                                {"eps", 1e-5},
                                {"bias", true},
                                {"chunk", int64_t{4}}};
        const JitKernel norm = kernel("norm", settings, level);
        settings.set("added", added);
        settings.set("scale", scale);
        const JitKernel fused = kernel("norm", settings, level);
        const JitKernel residual = kernel("elementwise",
                                          {{"op", std::string("residual")},
                                           {"scale", scale},
                                           {"inputs", 1 + added},
                                           {"flat", true},
                                           {"chunk", int64_t{8192}}},
                                          level);

        Row sum(x.size()), y(x.size()), mean(kRows), rstd(kRows);
        std::vector<SlotValue> terms = {kRows * D, sum, x, a};
        if (added == 2) terms.push_back(b);
        residual.run(terms, 1, 0);
        norm.run({kRows, y, sum, gamma, beta, mean, rstd, D, D}, kTasks, 0);

        Row fused_sum(x.size()), fused_y(x.size()), fused_mean(kRows), fused_rstd(kRows);
        std::vector<SlotValue> slots = {kRows, fused_y, x,         gamma, beta, fused_mean, fused_rstd,
                                        D,     D,       fused_sum, D,     a,    D};
        if (added == 2) slots.insert(slots.end(), {SlotValue(b), SlotValue(D)});
        fused.run(slots, kTasks, 0, TaskOrder::Backward);
        EXPECT_EQ(sum, fused_sum) << level << " D=" << D;
        EXPECT_EQ(y, fused_y) << level << " D=" << D;
        EXPECT_EQ(mean, fused_mean);
        EXPECT_EQ(rstd, fused_rstd);

        Row in_place(x.size());  // where nobody keeps the sum, the norm overwrites it
        slots[1] = in_place, slots[9] = in_place;
        fused.run(slots, kTasks, 0);
        EXPECT_EQ(y, in_place) << level << " D=" << D;
      }
    }
  }
}

TEST(FusedRows, NormGradientThenSum) {
  constexpr int64_t kRows = 40, kTasks = 2;
  for (const std::string& level : runnable_levels()) {
    for (int64_t D : {3, 33}) {
      Row dy = random_row(kRows * D, 1), x = random_row(kRows * D, 2), other = random_row(kRows * D, 3);
      Row gamma = random_row(D, 4), mean = random_row(kRows, 5), rstd = random_row(kRows, 6);
      ir::Attributes settings{{"kind", std::string("layer")},
                              {"width", D},
                              {"chunk", int64_t{32}},
                              {"dx", true},
                              {"parameters", true}};
      Row dx(x.size()), partials(static_cast<size_t>(kTasks * 2 * D)), sum(x.size()),
          fused_partials(partials.size());
      kernel("norm_grad", settings, level)
          .run({kRows, dx, dy, x, gamma, mean, rstd, partials, D, D, D}, kTasks, 0);
      settings.set("added", true);
      kernel("norm_grad", settings, level)
          .run({kRows, sum, dy, x, gamma, mean, rstd, fused_partials, D, D, D, other, D}, kTasks, 0);
      for (size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(sum[i], other[i] + dx[i]) << level << " D=" << D;
      EXPECT_EQ(partials, fused_partials);
    }
  }
}

TEST(FusedRows, GatesAndTheirGradients) {
  constexpr int64_t kCount = 1000;
  for (const std::string& level : runnable_levels()) {
    for (const char* kind : {"silu", "gelu", "relu"}) {
      auto elementwise = [&](const char* op, int64_t inputs) {
        return kernel("elementwise",
                      {{"op", std::string(op)},
                       {"kind", std::string(kind)},
                       {"inputs", inputs},
                       {"flat", true},
                       {"chunk", int64_t{8192}}},
                      level);
      };
      Row open = random_row(kCount, 1), up = random_row(kCount, 2), dy = random_row(kCount, 3);
      Row act(kCount), product(kCount), gate(kCount), inner(kCount), slope(kCount), gate_grad(kCount);
      elementwise("activation", 1).run({kCount, act, open}, 1, 0);
      elementwise("multiply", 2).run({kCount, product, act, up}, 1, 0);
      elementwise("gate", 2).run({kCount, gate, open, up}, 1, 0);
      EXPECT_EQ(product, gate) << kind << " " << level;
      elementwise("multiply", 2).run({kCount, inner, dy, up}, 1, 0);
      elementwise("activation_grad", 2).run({kCount, slope, inner, open}, 1, 0);
      elementwise("gate_grad", 3).run({kCount, gate_grad, dy, up, open}, 1, 0);
      EXPECT_EQ(slope, gate_grad) << kind << " " << level;
    }
  }
}

}  // namespace
}  // namespace tfc::test
