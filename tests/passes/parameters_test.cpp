// What expand makes of a description: names, shapes, order, neighbourhood, counts, starting values.
#include <gtest/gtest.h>

#include <cmath>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Init;
using ir::Module;
using ir::Parameter;
using ir::Phase;

std::string names(const Module& module, const std::string& prefix) {
  std::string text;
  for (const Parameter& parameter : module.parameters) {
    if (parameter.name.starts_with(prefix)) {
      text += (parameter.joins_previous ? "+" : " ") + parameter.name.substr(prefix.size());
    }
  }
  return text;
}

TEST(Parameters, NamesAndNeighbours) {
  const Module plain = compiled({.layers = 1}, Phase::Ops);
  EXPECT_EQ(names(plain, ""),
            " tok_emb.weight pos_emb.weight layers.0.norm1.weight layers.0.norm1.bias"
            " layers.0.attn.q.weight+layers.0.attn.k.weight+layers.0.attn.v.weight"
            " layers.0.attn.q.bias+layers.0.attn.k.bias+layers.0.attn.v.bias layers.0.attn.o.weight"
            " layers.0.attn.o.bias layers.0.norm2.weight layers.0.norm2.bias layers.0.ffn.up.weight"
            " layers.0.ffn.up.bias layers.0.ffn.down.weight layers.0.ffn.down.bias final_norm.weight "
            "final_norm.bias");
  const Module gated = compiled(
      {.placement = "sandwich", .norm = "rmsnorm", .activation = "swiglu", .layers = 1, .tie = false},
      Phase::Ops);
  EXPECT_EQ(names(gated, "layers.0.ffn."), " gate.weight+up.weight gate.bias+up.bias down.weight down.bias");
  EXPECT_EQ(names(gated, "layers.0.norm"), " 1.weight 1_out.weight 2.weight 2_out.weight");
  EXPECT_NE(gated.parameter("head.weight"), nullptr);
  EXPECT_EQ(gated.parameter("head.bias"), nullptr);
  const Module both = compiled({.kind = "encoder-decoder", .layers = 1}, Phase::Ops);
  EXPECT_NE(both.parameter("decoder.layers.0.cross.k.weight"), nullptr);
  EXPECT_NE(both.parameter("decoder.layers.0.norm3.weight"), nullptr);
  EXPECT_NE(both.parameter("encoder.final_norm.weight"), nullptr);
}

TEST(Parameters, ShapesAndDecay) {
  const Module module =
      compiled({.d_model = 8, .layers = 1, .heads = 4, .kv_heads = 2, .head_dim = 3}, Phase::Ops);
  EXPECT_EQ(module.parameter("layers.0.attn.q.weight")->shape, (std::vector<int64_t>{12, 8}));
  EXPECT_EQ(module.parameter("layers.0.attn.k.weight")->shape, (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(module.parameter("layers.0.attn.o.weight")->shape, (std::vector<int64_t>{8, 12}));
  EXPECT_TRUE(module.parameter("tok_emb.weight")->decayed);
  EXPECT_FALSE(module.parameter("layers.0.norm1.weight")->decayed);
}

int64_t count(const Module& module, const std::string& prefix) {
  int64_t sum = 0;
  for (const Parameter& parameter : module.parameters) {
    if (parameter.name.starts_with(prefix)) sum += parameter.elements();
  }
  return sum;
}

TEST(Parameters, KnownCounts) {
  const Module layers = compiled({.kind = "encoder-decoder",
                                  .head = "none",
                                  .placement = "post",
                                  .position = "none",
                                  .d_model = 512,
                                  .layers = 6,
                                  .heads = 8,
                                  .kv_heads = 8,
                                  .head_dim = 64,
                                  .d_ff = 2048,
                                  .vocab = 0},
                                 Phase::Ops);
  EXPECT_EQ(count(layers, "encoder.layers.0.attn."), 1050624);
  EXPECT_EQ(count(layers, "encoder.layers.0.ffn."), 2099712);
  EXPECT_EQ(count(layers, "encoder.layers.0."), 3152384);
  EXPECT_EQ(layers.parameter_count(), 44138496);

  const Module gpt2 = compiled({.d_model = 768,
                                .layers = 12,
                                .heads = 12,
                                .kv_heads = 12,
                                .head_dim = 64,
                                .d_ff = 3072,
                                .vocab = 50257,
                                .max_seq = 1024},
                               Phase::Ops);
  EXPECT_EQ(gpt2.parameter_count(), 124439808);
}

Init init_of(const std::string& init, const std::string& name) {
  const Module module = compiled({.kind = "decoder",
                                  .init = init,
                                  .d_model = 8,
                                  .layers = 2,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 2,
                                  .d_ff = 16,
                                  .vocab = 7,
                                  .tie = false,
                                  .head_bias = true},
                                 Phase::Ops);
  return module.parameter(name)->init;
}

Init normal(double deviation) { return {Init::Kind::Normal, deviation}; }
Init uniform(double bound) { return {Init::Kind::Uniform, bound}; }
Init constant(double value) { return {Init::Kind::Constant, value}; }

TEST(Parameters, StartingValues) {
  const std::string layer = "layers.1.";
  EXPECT_EQ(init_of("normal", layer + "ffn.down.weight"), normal(0.3));
  EXPECT_EQ(init_of("normal", layer + "ffn.down.bias"), constant(0));
  EXPECT_EQ(init_of("normal", layer + "norm1.weight"), constant(1));
  EXPECT_EQ(init_of("gpt2", layer + "ffn.up.weight"), normal(0.3));
  EXPECT_EQ(init_of("gpt2", layer + "ffn.down.weight"), normal(0.3 / 2));  // sqrt(2 * 2 layers)
  EXPECT_EQ(init_of("gpt2", layer + "attn.o.weight"), normal(0.3 / 2));

  EXPECT_EQ(init_of("xavier", layer + "attn.k.weight"),
            uniform(std::sqrt(6.0 / (16 + 8))));  // q, k, v: 8 + 4 + 4 rows
  EXPECT_EQ(init_of("xavier", layer + "attn.o.weight"), uniform(std::sqrt(6.0 / 16)));
  EXPECT_EQ(init_of("xavier", layer + "attn.o.bias"), constant(0));
  EXPECT_EQ(init_of("xavier", layer + "ffn.up.weight"), uniform(0.5));
  EXPECT_EQ(init_of("xavier", layer + "ffn.up.bias"), uniform(1 / std::sqrt(8.0)));
  EXPECT_EQ(init_of("xavier", "tok_emb.weight"), normal(1));

  EXPECT_EQ(init_of("torch", layer + "attn.q.weight"), uniform(std::sqrt(6.0 / (16 + 8))));
  EXPECT_EQ(init_of("torch", layer + "attn.q.bias"), constant(0));
  EXPECT_EQ(init_of("torch", layer + "attn.o.weight"), uniform(1 / std::sqrt(8.0)));
  EXPECT_EQ(init_of("torch", layer + "ffn.down.weight"), uniform(0.25));
  EXPECT_EQ(init_of("torch", layer + "ffn.down.bias"), uniform(0.25));
  EXPECT_EQ(init_of("torch", "head.bias"), uniform(1 / std::sqrt(8.0)));

  const Module tied = compiled({.init = "torch"}, Phase::Ops);
  EXPECT_EQ(tied.parameter("tok_emb.weight")->init, uniform(1 / std::sqrt(6.0)));
  EXPECT_EQ(tied.parameter("pos_emb.weight")->init, normal(1));
}

}  // namespace
}  // namespace tfc::passes::testing
