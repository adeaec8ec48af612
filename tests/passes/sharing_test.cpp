// Shared weights, LayerScale, branches that begin at zero, low-rank adapters: parameters, and what becomes of
// them.
#include <gtest/gtest.h>

#include <set>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Graph;
using ir::Module;
using ir::NodeId;
using ir::OpKind;
using ir::Phase;

std::string names_with(const Module& module, const std::string& part) {
  std::string names;
  for (const ir::Parameter& parameter : module.parameters)
    if (parameter.name.find(part) != std::string::npos) names += " " + parameter.name;
  return names;
}

TEST(SharedBlocks, OneSetOfParametersAndNodesOfTheirLayers) {
  const Module module = compiled({.layers = 3, .shared = "blocks.one"}, Phase::Joint);
  EXPECT_EQ(names_with(module, "layers."), "");
  EXPECT_EQ(names_with(module, "attn.q"), " blocks.one.attn.q.weight blocks.one.attn.q.bias");
  const Graph& infer = module.entry("infer")->graph;
  for (const char* name : {"layers.0.attn", "layers.2.attn", "layers.1.attn.q+k+v", "layers.2.ffn.up"})
    EXPECT_TRUE(infer.find(name).valid()) << name;

  // Each gradient is one output, to which all layers add, the last first.
  const Module fused = compiled({.layers = 3, .shared = "blocks.one"}, Phase::Fused);
  const Graph& train = fused.entry("train")->graph;
  std::set<std::string> outputs;
  for (const ir::Output& output : train.outputs)
    EXPECT_TRUE(outputs.insert(output.name).second) << output.name;
  ir::Value sum = train.output("grads:blocks.one.ffn.up.weight");
  for (const char* dw : {"layers.0.ffn.up.dw", "layers.1.ffn.up.dw", "layers.2.ffn.up.dw"}) {
    const NodeId add = sum.node;
    EXPECT_EQ(train.node(add).op, OpKind::Fused);  // adds to memory as it is made
    EXPECT_EQ(train.node(add).name, std::string(dw) + "+kept");
    sum = train.operand(add, static_cast<uint32_t>(train.node(add).donates));
  }
  EXPECT_EQ(train.node(sum.node).op, OpKind::State);
}

/// All layers project the memory with the same weights: once, whatever the level, and one gradient for both.
TEST(SharedBlocks, KeysOfTheMemoryAreMadeOnce) {
  for (const int level : {0, 1}) {
    const Module module = compiled({.kind = "encoder-decoder", .layers = 3, .shared = "blocks.one"}, Phase::Joint,
                                   {.optimisation = level});
    const Graph& train = module.entry("train")->graph;
    EXPECT_TRUE(train.find("decoder.layers.0.cross.k+v").valid()) << level;
    for (const char* other : {"decoder.layers.1.cross.k+v", "decoder.layers.1.cross.k", "decoder.layers.1.cross.v"})
      EXPECT_FALSE(train.find(other).valid()) << other << " at " << level;
    const std::string name = "decoder.blocks.one.cross.k.weight+decoder.blocks.one.cross.v.weight";
    EXPECT_TRUE(train.output("grads:" + name).valid()) << level;
    EXPECT_FALSE(train.output("grads:decoder.blocks.one.cross.k.weight").valid()) << level;
    EXPECT_EQ(module.entry("encode")->graph.outputs.size(), 6u) << level;  // each layer has a cache of its own
  }
}

TEST(LayerScale, FactorsBeginAsWritten) {
  const Module module = compiled({.layers = 1, .gamma = 0.25}, Phase::Ops);
  EXPECT_EQ(names_with(module, "gamma"), " layers.0.sum1.gamma layers.0.out.gamma");
  const ir::Parameter& gamma = *module.parameter("layers.0.out.gamma");
  EXPECT_EQ(gamma.init, (ir::Init{ir::Init::Kind::Constant, 0.25}));
  EXPECT_EQ(gamma.shape, std::vector<int64_t>{6});
  EXPECT_FALSE(gamma.decayed);
  EXPECT_EQ(names_with(compiled({.placement = "post", .layers = 1, .gamma = 0.25}, Phase::Ops), "gamma"),
            " layers.0.sum1.gamma layers.0.sum2.gamma");
}

/// The operations of a fused node's body.
std::vector<OpKind> body_of(const Graph& graph, const std::string& name) {
  const NodeId id = graph.find(name);
  std::vector<OpKind> ops;
  if (!id.valid() || !graph.node(id).body) return ops;
  for (const NodeId inner : graph.node(id).body->nodes())
    if (graph.node(id).body->node(inner).op != OpKind::Argument)
      ops.push_back(graph.node(id).body->node(inner).op);
  return ops;
}

TEST(LayerScale, FactorsAreTakenAlongByTheProduct) {
  const Module module = compiled({.layers = 1, .gamma = 0.25}, Phase::Fused);
  using Ops = std::vector<OpKind>;
  for (const char* entry : {"infer", "train"}) {
    const Graph& graph = module.entry(entry)->graph;
    for (const char* name : {"layers.0.attn.o+sum", "layers.0.ffn.down+sum"}) {
      EXPECT_EQ(body_of(graph, name), (Ops{OpKind::Linear, OpKind::ScaleColumns, OpKind::Residual})) << name;
      EXPECT_EQ(graph.node(graph.find(name)).results.size(), entry == std::string("train") ? 2u : 1u);
    }
  }
}

Module with_adapters(const Model& model, const std::vector<std::string>& targets) {
  Module module = blocks(model);
  module.lora = {2, 3.0, {}, {}};
  for (const std::string& target : targets) module.lora.targets.push_back({target, {}});
  return module;
}

std::string adapted(const std::vector<std::string>& targets) {
  Module module = with_adapters({.layers = 2}, targets);
  run_to(module, Phase::Ops);
  for (const ir::Parameter& parameter : module.parameters)
    EXPECT_EQ(parameter.frozen, parameter.name.find(".lora_") == std::string::npos) << parameter.name;
  EXPECT_EQ(module.facts.real("lora_scale"), 1.5);
  EXPECT_EQ(module.lora.rank, 0);
  return names_with(module, "lora_a");
}

TEST(Lora, TargetsAreEndsOfNamesOrGlobs) {
  EXPECT_EQ(adapted({"q"}), " layers.0.attn.q.lora_a layers.1.attn.q.lora_a");
  EXPECT_EQ(adapted({"attn.o.weight"}), " layers.0.attn.o.lora_a layers.1.attn.o.lora_a");
  EXPECT_EQ(adapted({"layers.1.ffn.*"}), " layers.1.ffn.up.lora_a layers.1.ffn.down.lora_a");
  EXPECT_EQ(adapted({"layers.0.attn.q", "v"}),
            " layers.0.attn.q.lora_a layers.0.attn.v.lora_a layers.1.attn.v.lora_a");
}

TEST(Lora, ShapesAndBeginnings) {
  Module module = with_adapters({.layers = 1}, {"up"});
  run_to(module, Phase::Ops);
  const ir::Parameter &a = *module.parameter("layers.0.ffn.up.lora_a"),
                      &b = *module.parameter("layers.0.ffn.up.lora_b");
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(b.shape, (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(a.init, (ir::Init{ir::Init::Kind::Uniform, 1 / std::sqrt(6.0)}));
  EXPECT_EQ(b.init, (ir::Init{ir::Init::Kind::Constant, 0}));
}

TEST(Lora, WhatNamesNoWeightIsAnError) {
  for (const char* target : {"query", "attn", "layers.7.attn.q", "tok_emb", "q*", "layers.[0"}) {
    Module module = with_adapters({}, {target});
    ir::Diagnostics diagnostics;
    EXPECT_FALSE(run_pipeline(module, Phase::Ops, {}, diagnostics)) << target;
    EXPECT_NE(diagnostics.text().find("lora: no weight is named by '" + std::string(target) + "'"),
              std::string::npos)
        << diagnostics.text();
  }
  Module module = with_adapters({}, {"query"});
  ir::Diagnostics diagnostics;
  run_pipeline(module, Phase::Ops, {}, diagnostics);
  EXPECT_NE(diagnostics.text().find("note: names of weights end in 'q', 'k', 'v', 'o', 'up', 'down'"),
            std::string::npos)
      << diagnostics.text();
}

TEST(Lora, OnlyAdaptersHaveGradientsAndTheirSumsAreTakenAlong) {
  Module module = with_adapters({.layers = 2}, {"q", "v"});
  run_to(module, Phase::Fused);
  const Graph& train = module.entry("train")->graph;
  size_t gradients = 0;
  for (const ir::Output& output : train.outputs) {
    if (!output.name.starts_with("grads:")) continue;
    ++gradients;
    EXPECT_NE(output.name.find(".lora_"), std::string::npos) << output.name;
  }
  EXPECT_EQ(gradients, 8u);
  EXPECT_EQ(body_of(train, "layers.1.attn.q.lora_b.2+sum"),
            (std::vector<OpKind>{OpKind::Linear, OpKind::Residual}));
}

/// Sums of magnitudes of the starting values of what ends a branch.
TEST(ZeroInit, BranchesBeginAtNothing) {
  for (const char* init : {"normal", "gpt2", "xavier", "torch"}) {
    Module module = blocks({.init = init});
    module.facts.set("zero_init", true);
    run_to(module, Phase::Ops);
    const ir::Init zero{ir::Init::Kind::Constant, 0};
    for (const char* name : {"attn.o.weight", "attn.o.bias", "ffn.down.weight", "ffn.down.bias"})
      EXPECT_EQ(module.parameter("layers.1." + std::string(name))->init, zero) << init << " " << name;
    EXPECT_NE(module.parameter("layers.1.ffn.up.weight")->init, zero) << init;
  }
}

}  // namespace
}  // namespace tfc::passes::testing
