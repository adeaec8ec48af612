// What the backward computes again: which nodes, when they run, and that the values are the same.
#include "passes/recompute/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "models/ends_with_attention.h"
#include "passes/models.h"
#include "passes/plan/schedule.h"

namespace tfc::passes::testing {
namespace {

using ir::Graph;
using ir::Module;
using ir::NodeId;
using ir::Phase;

/// Everything is large here.
PassOptions large() {
  PassOptions options;
  options.point = {1 << 16, 256, 256, 256, 0};
  return options;
}

Module with_mode(const Model& model, const std::string& mode, Phase phase, const PassOptions& options = {}) {
  Module module = blocks(model);
  module.recompute.mode = mode;
  run_to(module, phase, options);
  return module;
}

std::vector<std::string> late_names(const Graph& graph) {
  std::vector<std::string> names;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).late) names.push_back(graph.node(id).name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

TEST(ChooseRecompute, SmallThingsAreKept) {
  EXPECT_EQ(late_names(with_mode({}, "none", Phase::Joint).entry("train")->graph), Names{});
}

TEST(ChooseRecompute, NormsAndActivationsCostNothing) {
  const Module module = with_mode({.layers = 1, .tie = false}, "none", Phase::Joint, large());
  EXPECT_EQ(late_names(module.entry("train")->graph),
            (Names{"embedding.placed.again", "embedding.tokens.again", "layers.0.ffn.act.again",
                   "layers.0.norm1.again", "layers.0.norm2.again"}));
  EXPECT_TRUE(late_names(module.entry("infer")->graph).empty());
  EXPECT_TRUE(late_names(module.entry("loss")->graph).empty());
}

TEST(ChooseRecompute, OfALayerAllButItsEndIsComputedAgain) {
  const Module module = with_mode({.layers = 2}, "all", Phase::Joint);
  const Graph& graph = module.entry("train")->graph;
  const Names names = late_names(graph);
  for (const char* layer : {"layers.0", "layers.1"}) {
    for (const char* part : {".norm1", ".attn.q+k+v", ".attn", ".attn.o", ".norm2", ".ffn.up", ".ffn.act"}) {
      const std::string name = std::string(layer) + part + ".again";
      EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
    }
    // The last product's result is in the next layer's input, which is kept.
    EXPECT_FALSE(graph.find(std::string(layer) + ".ffn.down.again").valid());
  }
}

/// In the order of execution: the last layer's, then the one before; between them the backward of the last.
TEST(ChooseRecompute, OneLayerAtATimeAndInReverse) {
  const Module module = with_mode({.layers = 3}, "all", Phase::Planned);
  const Graph& graph = module.entry("train")->graph;
  std::vector<std::string> again;  // layers of late nodes, and of the gradient of their attention
  for (NodeId id : schedule(graph, small_point())) {
    const ir::Node& node = graph.node(id);
    const std::string layer = layer_of(node.name);
    const bool gradient = node.op == ir::OpKind::AttentionGrad;
    if (!node.late && !gradient) continue;
    const std::string what = (gradient ? "backward of " : "again ") + layer;
    if (again.empty() || again.back() != what) again.push_back(what);
  }
  // The first norm is made twice: for the products, and at the very end for the gradient of their weights.
  EXPECT_EQ(again, (Names{"again layers.2", "backward of layers.2", "again layers.2", "again layers.1",
                          "backward of layers.1", "again layers.1", "again layers.0", "backward of layers.0",
                          "again layers.0"}));
}

TEST(ChooseRecompute, ValuesAreTheSame) {
  for (const Model& model :
       {Model{}, Model{.placement = "post", .activation = "swiglu", .mask = true},
        Model{.kind = "encoder-decoder", .norm = "rmsnorm", .position = "rope", .d_model = 12}}) {
    const Module plain = with_mode(model, "none", Phase::Fused), all = with_mode(model, "all", Phase::Fused),
                 cheap = with_mode(model, "none", Phase::Fused, large());
    for (const char* entry : {"train", "vjp"}) {
      std::vector<double> expected;
      for (const Module* module : {&plain, &all, &cheap}) {
        ir::Interpreter interpreter = random_inputs(*module, *module->entry(entry), small_point());
        interpreter.run(module->entry(entry)->graph);
        interpreter.commit();
        const std::vector<double>& found = interpreter.block(ir::Space::Grads);
        if (expected.empty()) expected = found;
        ASSERT_EQ(expected.size(), found.size());
        for (size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], expected[i], 1e-12) << entry << " " << i;
      }
    }
  }
}

/// The copies are fused as the forward is: nothing late stands alone that was a part of a kernel.
TEST(ChooseRecompute, CopiesRunTheForwardsKernels) {
  const Module module = with_mode({.activation = "swiglu", .layers = 1}, "all", Phase::Fused);
  const Graph& graph = module.entry("train")->graph;
  EXPECT_TRUE(graph.find("layers.0.attn.o.again+sum").valid());
  EXPECT_TRUE(graph.find("layers.0.ffn.gated.again.fused").valid());
}

/// In vjp nobody reads what the last layer makes but attention's log-sums: its copy gives these too.
TEST(ChooseRecompute, WhatTheForwardMadeForNobodyIsGone) {
  ir::Diagnostics diagnostics;
  auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"model.toml", models::kEndsWithAttention});
  const auto description = frontend::load_description(file, {}, diagnostics);
  ASSERT_TRUE(description) << diagnostics.text();
  Module module = frontend::build_blocks(*description, ir::DType::F64);
  run_to(module, Phase::Joint);
  const Graph& vjp = module.entry("vjp")->graph;
  EXPECT_TRUE(vjp.find("layers.1.attn.again").valid());
  EXPECT_FALSE(vjp.find("layers.1.attn").valid());
  EXPECT_TRUE(vjp.find("layers.0.attn").valid());
}

TEST(ChooseRecompute, DumpsReadBack) {
  Module module = with_mode({}, "all", Phase::Planned);
  module.recompute = {"auto", 1000, 2, 3, {}};
  const std::string text = ir::print(module);
  EXPECT_NE(text.find("\nrecompute auto bytes 1000 batch 2 seq 3\n"), std::string::npos);
  EXPECT_NE(text.find(" late : "), std::string::npos);
  ir::Diagnostics diagnostics;
  auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"model.tcir", text});
  const auto again = ir::read_module(file, diagnostics);
  ASSERT_TRUE(again) << diagnostics.text();
  EXPECT_EQ(ir::print(*again), text);
}

TEST(ChooseRecompute, AnImpossibleBudgetIsRefusedWithItsParts) {
  Module module = blocks({});
  module.recompute = {"auto", 1000, 2, 5, {}};
  ir::Diagnostics diagnostics;
  EXPECT_FALSE(run_pipeline(module, Phase::Joint, {}, diagnostics));
  const std::string text = diagnostics.text();
  EXPECT_NE(text.find("the budget is 1000 bytes"), std::string::npos) << text;
  for (const char* part : {"note: parameters ", ", gradients ", ", moments ", ", workspace "}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(LayerOf, ReadsPaths) {
  EXPECT_EQ(layer_of("layers.3.attn.q"), "layers.3");
  EXPECT_EQ(layer_of("encoder.layers.12.norm1.again"), "encoder.layers.12");
  EXPECT_EQ(layer_of("final_norm"), "");
  EXPECT_EQ(layer_of("players.3.x"), "");
}

}  // namespace
}  // namespace tfc::passes::testing
