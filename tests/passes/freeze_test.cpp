// What a description freezes: which parameters, where they lie, what is no longer computed.
#include <gtest/gtest.h>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Module;
using ir::Phase;

Module frozen_blocks(const Model& model, const std::vector<std::string>& patterns) {
  Module module = blocks(model);
  for (const std::string& pattern : patterns) module.freezes.push_back({pattern, {}});
  return module;
}

/// Names of the frozen parameters, in order.
std::vector<std::string> frozen(const Model& model, const std::vector<std::string>& patterns) {
  Module module = frozen_blocks(model, patterns);
  run_to(module, Phase::Ops);
  std::vector<std::string> names;
  for (const ir::Parameter& parameter : module.parameters) {
    if (parameter.frozen) names.push_back(parameter.name);
  }
  EXPECT_TRUE(module.freezes.empty());
  return names;
}

size_t count_in(const std::vector<std::string>& names, const std::string& prefix) {
  return static_cast<size_t>(std::count_if(
      names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(prefix); }));
}

using Names = std::vector<std::string>;

TEST(Freeze, PartsOfAStack) {
  const Model model{.kind = "encoder", .head = "classifier", .layers = 3, .types = 2, .embedding_norm = true};
  EXPECT_EQ(frozen(model, {"embedding"}), (Names{"tok_emb.weight", "pos_emb.weight", "type_emb.weight",
                                                 "emb_norm.weight", "emb_norm.bias"}));
  EXPECT_EQ(frozen(model, {"head", "final_norm"}),
            (Names{"final_norm.weight", "final_norm.bias", "head.weight"}));
  const Names middle = frozen(model, {"layers.1"});
  EXPECT_EQ(middle.size(), 16u);
  EXPECT_EQ(count_in(middle, "layers.1."), 16u);
  EXPECT_EQ(frozen(model, {"layers.0-1"}).size(), 32u);
  EXPECT_EQ(frozen(model, {"layers"}).size(), 48u);
  EXPECT_EQ(frozen(model, {"layers.1-2.attn.o"}), (Names{"layers.1.attn.o.weight", "layers.1.attn.o.bias",
                                                         "layers.2.attn.o.weight", "layers.2.attn.o.bias"}));
}

TEST(Freeze, SidesOfAPair) {
  const Model model{.kind = "encoder-decoder"};
  const Names names = frozen(model, {"encoder.layers.0-1", "final_norm"});
  EXPECT_EQ(count_in(names, "encoder.layers."), 32u);
  EXPECT_EQ(count_in(names, "decoder.layers."), 0u);
  EXPECT_EQ(count_in(names, "encoder.final_norm."), 2u);
  EXPECT_EQ(count_in(names, "decoder.final_norm."), 2u);
  EXPECT_EQ(frozen(model, {"decoder.final_norm"}).size(), 2u);
}

TEST(Freeze, Globs) {
  EXPECT_EQ(frozen({}, {"layers.?.norm[12].bias"}), (Names{"layers.0.norm1.bias", "layers.0.norm2.bias",
                                                           "layers.1.norm1.bias", "layers.1.norm2.bias"}));
  EXPECT_EQ(frozen({}, {"*.attn.*"}).size(), 16u);
}

std::string errors_of(const Model& model, const std::string& pattern) {
  Module module = frozen_blocks(model, {pattern});
  ir::Diagnostics diagnostics;
  EXPECT_FALSE(run_pipeline(module, Phase::Ops, {}, diagnostics)) << pattern;
  return diagnostics.text();
}

TEST(Freeze, WhatMatchesNothingIsAnError) {
  EXPECT_EQ(errors_of({}, "layers.2"),
            "transformerc: error: freeze: no parameter is named by 'layers.2'\n"
            "note: the model's parts are 'embedding', 'layers.0-1', 'final_norm'\n");
  EXPECT_NE(errors_of({}, "embeding").find("did you mean 'embedding'?"), std::string::npos);
  EXPECT_NE(errors_of({}, "head").find("the head is the token table, which 'embedding' freezes"),
            std::string::npos);
  EXPECT_NE(errors_of({}, "layers.[0").find("is no glob"), std::string::npos);
  EXPECT_NE(errors_of({.kind = "encoder-decoder"}, "layers.0").find("'encoder.layers.0-1'"),
            std::string::npos);
  for (const char* pattern : {"", "layer", "layers.1-0", "layers.0.att", "norm1", "*.gamma", "layers.0.*x"}) {
    EXPECT_NE(errors_of({}, pattern).find("no parameter is named by"), std::string::npos) << pattern;
  }
}

TEST(Freeze, ExpertsOfALayerAreFrozenTogether) {
  const Model model{.experts = 3};
  EXPECT_EQ(frozen(model, {"layers.0.ffn.experts"}).size(), 12u);
  EXPECT_EQ(frozen(model, {"layers.1.ffn.router"}), (Names{"layers.1.ffn.router.weight"}));
  EXPECT_EQ(frozen(model, {"*.experts.*.down.weight"}).size(), 6u);
  EXPECT_EQ(errors_of(model, "layers.0.ffn.experts.1"),
            "transformerc: error: not supported yet: freezing 'layers.0.ffn.experts.1.up.weight' without "
            "'layers.0.ffn.experts.0.up.weight': the experts of a layer are one matrix\n");
}

TEST(Freeze, FrozenParametersComeLastInTheBlock) {
  Module module = frozen_blocks({}, {"layers.0", "layers.1.attn.k.weight"});
  run_to(module, Phase::Ops);
  for (const ir::Parameter& parameter : module.parameters) {
    EXPECT_EQ(parameter.offset >= module.trained_block(), parameter.frozen) << parameter.name;
  }
  EXPECT_LT(module.trained_block(), module.parameter_block());
  // k leaves the matrix of q, k, v; where all three are frozen they stay one.
  EXPECT_FALSE(module.parameter("layers.1.attn.k.weight")->joins_previous);
  EXPECT_FALSE(module.parameter("layers.1.attn.v.weight")->joins_previous);
  EXPECT_TRUE(module.parameter("layers.1.attn.v.bias")->joins_previous);
  EXPECT_TRUE(module.parameter("layers.0.attn.v.weight")->joins_previous);
}

std::vector<std::string> gradients(const Module& module, const std::string& entry) {
  std::vector<std::string> names;
  for (const ir::Output& output : module.entry(entry)->graph.outputs) {
    if (output.name.starts_with("grads:")) names.push_back(output.name.substr(6));
  }
  return names;
}

bool has_node(const Module& module, const std::string& entry, const std::string& part) {
  const ir::Graph& graph = module.entry(entry)->graph;
  for (ir::NodeId id : graph.nodes()) {
    if (graph.node(id).name.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(PruneFrozen, TheBackwardStopsAtTheLowestThatMoves) {
  Module module = frozen_blocks({}, {"embedding", "layers.0"});
  run_to(module, Phase::Joint);
  for (const char* entry : {"train", "vjp"}) {
    EXPECT_EQ(gradients(module, entry).size(), 14u) << entry;  // q, k, v are one, and their biases
    EXPECT_FALSE(has_node(module, entry, "layers.0.ffn.down.dx")) << entry;
    EXPECT_FALSE(has_node(module, entry, "layers.0.attn.grad")) << entry;
    EXPECT_TRUE(has_node(module, entry, "layers.1.attn.grad")) << entry;
    EXPECT_FALSE(has_node(module, entry, "layers.1.norm1.dx")) << entry;
  }
  EXPECT_EQ(module.gradient_block(), module.trained_block());
}

TEST(PruneFrozen, ATiedTableHasNoGradientOfTheHeadEither) {
  Module module = frozen_blocks({}, {"embedding"});
  run_to(module, Phase::Joint);
  const ir::Graph& graph = module.entry("train")->graph;
  const ir::NodeId loss = graph.output("loss.sum").node;
  ASSERT_EQ(graph.node(loss).op, ir::OpKind::LinearLossGrad);
  EXPECT_TRUE(graph.uses({loss, 3}).empty());
  EXPECT_FALSE(graph.uses({loss, 2}).empty());
}

TEST(PruneFrozen, ALossWithoutGradientsIsAPlainLoss) {
  Module module = frozen_blocks({}, {"*"});
  run_to(module, Phase::Joint);
  const ir::Graph& graph = module.entry("train")->graph;
  EXPECT_EQ(graph.node(graph.output("loss.sum").node).op, ir::OpKind::LinearLoss);
  EXPECT_FALSE(graph.find("mean").valid());
  EXPECT_TRUE(module.entry("vjp")->graph.outputs.empty());
  EXPECT_EQ(module.gradient_block(), 16);
}

TEST(PruneFrozen, WithoutThePassGradientsHaveTheirMemory) {
  PassOptions options;
  options.disabled = {"prune-frozen"};
  Module module = frozen_blocks({}, {"embedding", "layers.0"});
  run_to(module, Phase::Planned, options);
  EXPECT_EQ(module.gradient_block(), module.parameter_block());
  EXPECT_TRUE(has_node(module, "train", "layers.0.attn.grad"));
}

TEST(Freeze, DumpsKeepWhatIsFrozen) {
  Module module = frozen_blocks({}, {"embedding", "layers.\"0"});
  const std::string text = ir::print(module);
  EXPECT_NE(text.find("freeze {\n  \"embedding\"\n  \"layers.\\\"0\"\n}\n"), std::string::npos) << text;
  ir::Diagnostics diagnostics;
  auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"model.tcir", text});
  const auto again = ir::read_module(file, diagnostics);
  ASSERT_TRUE(again) << diagnostics.text();
  EXPECT_EQ(ir::print(*again), text);
}

}  // namespace
}  // namespace tfc::passes::testing
