// Fusing passes: which nodes become one, which stay apart, and that the interpreter computes the same to the
// bit.
#include <gtest/gtest.h>

#include <map>

#include "passes/accumulate_in_place.h"
#include "passes/fuse_epilogues.h"
#include "passes/fuse_residual_norm.h"
#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Entry;
using ir::Graph;
using ir::Module;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Phase;

/// How many fused nodes of each kernel the entry has.
std::map<std::string, int> kernels(const Module& module, const std::string& entry) {
  std::map<std::string, int> counts;
  const Graph& graph = module.entry(entry)->graph;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).op == OpKind::Fused) ++counts[graph.node(id).attributes.text("kernel")];
  }
  return counts;
}

int count(const Module& module, const std::string& entry, OpKind op) {
  int found = 0;
  const Graph& graph = module.entry(entry)->graph;
  for (NodeId id : graph.nodes()) found += graph.node(id).op == op;
  return found;
}

std::vector<OpKind> body_of(const Module& module, const std::string& entry, const std::string& name) {
  const Graph& graph = module.entry(entry)->graph;
  const NodeId id = graph.find(name);
  std::vector<OpKind> ops;
  if (!id.valid() || !graph.node(id).body) return ops;
  for (NodeId inner : graph.node(id).body->nodes()) {
    const OpKind op = graph.node(id).body->node(inner).op;
    if (op != OpKind::Argument) ops.push_back(op);
  }
  return ops;
}

using Ops = std::vector<OpKind>;

TEST(FuseEpilogues, OrdinaryLayer) {
  const Module module = compiled({.layers = 1}, Phase::Fused);
  EXPECT_EQ(body_of(module, "infer", "layers.0.ffn.up+gelu"), (Ops{OpKind::Linear, OpKind::Activation}));
  EXPECT_EQ(body_of(module, "infer", "layers.0.attn.o+sum"), (Ops{OpKind::Linear, OpKind::Residual}));
  EXPECT_EQ(body_of(module, "infer", "layers.0.ffn.down+sum"), (Ops{OpKind::Linear, OpKind::Residual}));
  EXPECT_EQ(count(module, "infer", OpKind::Activation) + count(module, "infer", OpKind::Residual), 0);

  // In training the backward reads what went into the activation, so it is a second result.
  const Graph& train = module.entry("train")->graph;
  EXPECT_EQ(train.node(train.find("layers.0.ffn.up+gelu")).results.size(), 2u);
  const Graph& infer = module.entry("infer")->graph;
  EXPECT_EQ(infer.node(infer.find("layers.0.ffn.up+gelu")).results.size(), 1u);
  EXPECT_EQ(body_of(module, "train", "layers.0.ffn.down.dx+slope"),
            (Ops{OpKind::LinearDx, OpKind::ActivationGrad}));
}

// What the backward computes again of a feed-forward, for its second weight's gradient alone, comes with the slope.
TEST(FuseEpilogues, AnActivationComputedAgainComesWithItsSlope) {
  Module module = blocks({.layers = 2});
  module.recompute.mode = "all";
  run_to(module, Phase::Fused);
  const Graph& train = module.entry("train")->graph;
  const NodeId slope = train.find("layers.0.ffn.down.dx+slope");
  ASSERT_EQ(body_of(module, "train", "layers.0.ffn.down.dx+slope"),
            (Ops{OpKind::LinearDx, OpKind::ActivationGrad, OpKind::Activation}));
  EXPECT_EQ(train.node(slope).results.size(), 2u);
  EXPECT_EQ(count(module, "train", OpKind::Activation), 0);
  const std::vector<ir::Use> readers = train.uses({slope, 1});
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_EQ(train.node(readers[0].node).name, "layers.0.ffn.down.dw+kept");
}

TEST(FuseEpilogues, GatesAreComputedAgainInTheBackward) {
  const Module module = compiled({.activation = "swiglu", .layers = 1}, Phase::Fused);
  EXPECT_EQ(kernels(module, "infer")["gate"], 1);
  EXPECT_EQ(kernels(module, "train")["gate"], 1);
  EXPECT_EQ(kernels(module, "train")["gate_grad"], 1);
  EXPECT_EQ(count(module, "train", OpKind::Activation) + count(module, "train", OpKind::Multiply), 0);
}

TEST(FuseEpilogues, AProductWithOtherReadersStays) {
  Module module = compiled({.layers = 1}, Phase::Joint);
  Graph& graph = module.entry("infer")->graph;
  const NodeId product = graph.find("layers.0.attn.o");
  ASSERT_TRUE(product.valid());
  graph.outputs.push_back({"tap", {product, 0}});
  run_to(module, Phase::Fused);
  EXPECT_TRUE(graph.find("layers.0.attn.o").valid());
  EXPECT_TRUE(body_of(module, "infer", "layers.0.attn.o+sum").empty());
}

TEST(FuseResidualNorm, SandwichAcrossBlockBorders) {
  const Module module = compiled({.placement = "sandwich", .layers = 2}, Phase::Fused);
  // Each sum is of a norm's result, so no product makes it; it is normalised where it is made: the first sum
  // of a layer by norm2, the second by the next layer's norm1, the last by the final norm.
  EXPECT_EQ(kernels(module, "infer")["residual_norm"], 4);
  EXPECT_EQ(body_of(module, "infer", "layers.0.out+layer_norm"), (Ops{OpKind::Residual, OpKind::LayerNorm}));
  EXPECT_EQ(count(module, "infer", OpKind::Residual), 0);
}

TEST(FuseResidualNorm, GradientsOfPreNormJoinTheirSum) {
  const Module module = compiled({.layers = 2}, Phase::Fused);
  EXPECT_EQ(kernels(module, "train")["norm_grad"], 4);
}

TEST(AccumulateInPlace, EveryLargeGradient) {
  const Module module = compiled({.layers = 1, .tie = true}, Phase::Fused);
  EXPECT_EQ(count(module, "train", OpKind::LinearDw), 0);
  EXPECT_EQ(count(module, "train", OpKind::ColumnSum), 0);
  EXPECT_EQ(count(module, "train", OpKind::EmbeddingGrad), 0);
  EXPECT_EQ(count(module, "train", OpKind::LinearLossGrad), 0);
  // The tied table: first the head's part, which begins with what is kept, then the embedding's.
  const Graph& graph = module.entry("train")->graph;
  const ir::Value table = graph.output("grads:tok_emb.weight");
  EXPECT_EQ(graph.node(table.node).name, "embedding.tokens.dtable+kept");
  const Node& last = graph.node(table.node);
  const ir::Value before = graph.operand(table.node, static_cast<uint32_t>(last.donates));
  EXPECT_EQ(graph.node(before.node).name, "loss.grad+kept");
  EXPECT_EQ(before.result, 0u);
}

/// Bodies hold the primitives that they replace, in order, so fused and unfused graphs agree to the bit.
TEST(Fusion, TheInterpreterSeesNoDifference) {
  const std::vector<Model> models = {{.mask = true},
                                     {.placement = "sandwich", .activation = "swiglu", .residual_scale = 0.5},
                                     {.kind = "encoder-decoder",
                                      .placement = "post",
                                      .norm = "rmsnorm",
                                      .activation = "reglu",
                                      .mask = true}};
  for (const Model& model : models) {
    const Module joint = compiled(model, Phase::Joint), fused = compiled(model, Phase::Fused);
    for (const Entry& entry : joint.entries) {
      if (entry.name == "step") continue;
      SCOPED_TRACE(model.kind + " " + entry.name);
      ir::Interpreter plain = random_inputs(joint, entry, small_point());
      ir::Interpreter other = random_inputs(fused, *fused.entry(entry.name), small_point());
      plain.run(entry.graph);
      other.run(fused.entry(entry.name)->graph);
      for (const ir::Output& output : entry.graph.outputs) {
        EXPECT_EQ(plain.value(output.value).data, other.output(output.name).data) << output.name;
      }
    }
  }
}

TEST(Fusion, SecondRunsFindNothing) {
  for (const char* placement : {"pre", "post", "sandwich"}) {
    Module module = compiled({.placement = placement, .activation = "geglu"}, Phase::Fused);
    for (bool (*pass)(Module&, PassContext&) : {accumulate_in_place, fuse_epilogues, fuse_residual_norm}) {
      PassOptions options;
      ir::Diagnostics diagnostics;
      PassContext context{options, diagnostics};
      EXPECT_FALSE(pass(module, context)) << placement;
    }
  }
}

}  // namespace
}  // namespace tfc::passes::testing
