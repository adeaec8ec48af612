// Whatever the backward computes again, gradients are the same bits; the memory is less, and fits a budget.
#include <gtest/gtest.h>

#include "models/session.h"

namespace tfc::models {
namespace {

const std::string kDecoder = R"(
[model]
kind = "decoder"
d_model = 72
layers = 5
heads = 6
kv_heads = 2
vocab = 150
[position]
type = "rope"
[ffn]
activation = "swiglu"
)";

const std::string kPair = R"(
[model]
kind = "encoder-decoder"
d_model = 65
encoder_layers = 2
decoder_layers = 3
heads = 5
d_ff = 130
vocab = 95
max_seq = 64
[embedding]
norm = true
[norm]
placement = "post"
)";

const std::string kWrittenOut = R"(
[model]
kind = "encoder"
d_model = 33
layers = 3
heads = 3
pattern = ["odd"]
[block.odd]
nodes = [
  { id = "norm",  op = "norm",       in = "x" },
  { id = "attn",  op = "attention",  in = "norm" },
  { id = "up",    op = "linear",     in = "norm", out = 70 },
  { id = "act",   op = "activation", in = "up", kind = "silu" },
  { id = "twice", op = "multiply",   in = ["act", "up"] },
  { id = "down",  op = "linear",     in = "twice" },
  { id = "out",   op = "residual",   in = ["attn", "down"] },
]
)";

const std::string kDropout = R"(
[model]
kind = "decoder"
d_model = 72
layers = 3
heads = 6
vocab = 150
max_seq = 64
dropout = 0.3
[norm]
placement = "sandwich"
)";

std::string with(const std::string& description, const std::string& train) {
  return description + "[train]\n" + train + "\n";
}

Results results_of(const Compiled& compiled) {
  Session session(compiled, with_threads(2));
  const Call call = random_call(session, 6, 50, 41);
  return session.everything(call, call.batch.grad_output);
}

/// A design point at which the smallest activation is worth computing again.
constexpr ir::Point kLarge{4096, 256, 256, 256, 0};

int late_nodes(const ir::Module& module, const char* entry) {
  int count = 0;
  const ir::Graph& graph = module.entry(entry)->graph;
  for (ir::NodeId id : graph.nodes()) count += graph.node(id).late;
  return count;
}

class Recompute : public testing::TestWithParam<std::string> {};

TEST_P(Recompute, SameBits) {
  const std::string& description = GetParam();
  const Compiled nothing = compile(description, {.disabled = {"choose-recompute"}});
  EXPECT_EQ(late_nodes(nothing.joint, "vjp"), 0);
  const Results expected = results_of(nothing);
  const Compiled cheap = compile(description, {.point = kLarge});
  EXPECT_GT(late_nodes(cheap.joint, "vjp"), 0);
  EXPECT_EQ(differences(expected, results_of(cheap)), "") << "what is cheap";
  for (const int level : {0, 1, 2}) {
    const Compiled all = compile(with(description, "recompute = \"all\""), {.optimisation = level});
    EXPECT_EQ(differences(expected, results_of(all)), "") << "all at -O" << level;
    if (level > 0) EXPECT_GT(late_nodes(all.joint, "vjp"), late_nodes(cheap.joint, "vjp"));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Recompute, testing::Values(kDecoder, kPair, kWrittenOut, kDropout));

size_t training_bytes(const Compiled& compiled, int64_t B, int64_t T) {
  size_t bytes = 0;
  for (const int what : {+TC_MEMORY_PARAMETERS, +TC_MEMORY_GRADIENTS, +TC_MEMORY_MOMENTS,
                         TC_MEMORY_WORKSPACE + TC_ENTRY_TRAIN}) {
    bytes += compiled.api().memory(what, B, T, T, 8);  // a budget has room for eight threads' scratch
  }
  return bytes;
}

size_t workspace(const Compiled& compiled) {
  return compiled.api().memory(TC_MEMORY_WORKSPACE + TC_ENTRY_TRAIN, 16, 64, 64, 1);
}

TEST(Recompute, LayersShareTheMemoryOfOne) {
  const Compiled nothing = compile(kDecoder, {.disabled = {"choose-recompute"}});
  const Compiled cheap = compile(kDecoder, {.point = kLarge});
  const Compiled all = compile(with(kDecoder, "recompute = \"all\""));
  EXPECT_LT(workspace(cheap), 0.8 * workspace(nothing));
  EXPECT_LT(workspace(all), 0.45 * workspace(nothing));
}

TEST(Recompute, FitsABudgetWithTheFewestLayers) {
  const size_t most = training_bytes(compile(kDecoder), 16, 64);
  const size_t least = training_bytes(compile(with(kDecoder, "recompute = \"all\"")), 16, 64);
  int layers_before = -1;
  for (const double share : {1.2, 0.6, 0.3}) {
    const size_t bytes = least + static_cast<size_t>(share * static_cast<double>(most - least)) + 10'000;
    const Compiled fitted =
        compile(with(kDecoder, "recompute = \"auto\"\nbudget = { bytes = \"" + std::to_string(bytes) +
                                   "B\", batch = 16, seq = 64 }"));
    EXPECT_LE(training_bytes(fitted, 16, 64), bytes);
    const int layers = late_nodes(fitted.joint, "train");
    EXPECT_GE(layers, layers_before);
    layers_before = layers;
  }
}

}  // namespace
}  // namespace tfc::models
