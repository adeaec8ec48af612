// Families of blocks run by the fast kernels: what passes over memory on its own account is counted.
#include <gtest/gtest.h>

#include <map>

#include "models/compiled.h"
#include "models/descriptions.h"

namespace tfc::models {
namespace {

/// Calls of each kernel family in a plan, products left out.
std::map<std::string, int> passes_over_memory(const Compiled& compiled, const char* entry) {
  std::map<std::string, int> counts;
  for (const ir::Record& record : compiled.planned.entry(entry)->plan->records) {
    if (record.kind != ir::Record::Kind::Call || record.kernel.family == "product") continue;
    const bool named = record.kernel.family == "elementwise";
    ++counts[named ? record.kernel.attributes.text("op") : record.kernel.family];
  }
  return counts;
}

using Counts = std::map<std::string, int>;

const std::string kStack = R"(
[model]
kind = "encoder"
d_model = 32
layers = 3
heads = 2
[inputs]
mask = false
)";

TEST(FastPaths, ParallelBranchesAreAddedByTheProduct) {
  const Compiled compiled = compile(R"(
[model]
kind = "encoder"
d_model = 32
layers = 3
heads = 2
pattern = ["parallel"]
[inputs]
mask = false
[block.parallel]
nodes = [
  { id = "norm1", op = "norm", in = "x" },
  { id = "attn", op = "attention", in = "norm1" },
  { id = "ffn", op = "ffn", in = "norm1" },
  { id = "out", op = "residual", in = ["x", "attn", "ffn"] },
]
)");
  EXPECT_EQ(passes_over_memory(compiled, "infer"), (Counts{{"attention", 3}, {"norm", 4}}));
  const Counts backward = passes_over_memory(compiled, "vjp");
  for (const char* own : {"residual", "multiply", "scale", "copy"}) EXPECT_EQ(backward.count(own), 0u) << own;
}

TEST(FastPaths, SandwichNormsAndLayerScale) {
  const Compiled sandwich = compile(kStack + "[norm]\nplacement = \"sandwich\"\n");
  EXPECT_EQ(passes_over_memory(sandwich, "infer"), (Counts{{"attention", 3}, {"norm", 13}}));
  const Compiled scaled = compile(kStack + "[residual]\ngamma = 0.1\n");
  EXPECT_EQ(passes_over_memory(scaled, "infer"), (Counts{{"attention", 3}, {"norm", 7}}));
  const Counts backward = passes_over_memory(scaled, "vjp");
  EXPECT_EQ(backward.at("scale_columns_grad"), 6);
  EXPECT_EQ(backward.count("scale_columns"), 0u);
}

TEST(FastPaths, AdaptersAddNoPassOfTheirOwn) {
  const Compiled plain = compile(kStack), adapted = compile(kStack + "[train.lora]\nrank = 2\n");
  EXPECT_EQ(passes_over_memory(adapted, "infer"), passes_over_memory(plain, "infer"));
}

}  // namespace
}  // namespace tfc::models
