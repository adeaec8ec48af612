// What the block graph says of a description: nodes, attributes, operands, facts, places.
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "frontend/testing.h"

namespace tfc::frontend::testing {
namespace {

using ir::Graph;
using ir::Module;
using ir::Node;
using ir::OpKind;
using ir::Value;

Module good(const std::string& name) {
  ir::Diagnostics diagnostics;
  const auto description = load_description(folder("good") + "/" + name + ".toml", {}, diagnostics);
  EXPECT_TRUE(description) << diagnostics.text();
  return blocks_of(description.value_or(Description()));
}

const Graph& graph_of(const Module& module) { return module.entry("model")->graph; }

const Node& node(const Module& module, const std::string& name) {
  const ir::NodeId id = graph_of(module).find(name);
  EXPECT_TRUE(id.valid()) << "there is no node " << name;
  static const Node kNone;
  return id.valid() ? graph_of(module).node(id) : kNone;
}

bool has_node(const Module& module, const std::string& name) { return graph_of(module).find(name).valid(); }

/// Names of a node's operands, "_" where one is absent before the last.
std::string operands(const Module& module, const std::string& name) {
  const Graph& graph = graph_of(module);
  std::string text;
  for (const Value& value : graph.operands(graph.find(name)))
    text += (text.empty() ? "" : " ") + (value.valid() ? graph.node(value.node).name : "_");
  while (text.ends_with(" _")) text.resize(text.size() - 2);
  return text;
}

std::string type(const Module& module, const std::string& name) {
  return node(module, name).results[0].text();
}

std::string outputs(const Module& module) {
  std::string text;
  for (const ir::Output& output : graph_of(module).outputs) text += (text.empty() ? "" : " ") + output.name;
  return text;
}

TEST(Blocks, PlainDecoder) {
  const Module module = good("decoder_plain");
  EXPECT_EQ(module.name, "decoder_plain");
  EXPECT_EQ(module.phase, ir::Phase::Blocks);
  EXPECT_EQ(type(module, "tokens"), "i32[B,T]");
  EXPECT_EQ(type(module, "mask"), "u8[B,T]");
  EXPECT_EQ(type(module, "targets"), "i32[B,T]");
  EXPECT_EQ(type(module, "head"), "f32[B,T,100]");
  EXPECT_EQ(outputs(module), "output loss.sum loss.count");
  EXPECT_EQ(operands(module, "layers.0"), "embedding _ mask");
  EXPECT_EQ(operands(module, "layers.3"), "layers.2 _ mask");
  EXPECT_EQ(operands(module, "final_norm"), "layers.3");
  EXPECT_EQ(operands(module, "loss"), "head targets");
  const ir::Attributes& layer = node(module, "layers.2").attributes;
  EXPECT_EQ(layer.text("prefix"), "layers.2");
  EXPECT_FALSE(layer.flag("cross"));
  EXPECT_EQ(layer.text("placement"), "pre");
  EXPECT_EQ(layer.integer("depth"), 4);
  EXPECT_EQ(layer.integer("attention.heads"), 4);
  EXPECT_EQ(layer.integer("attention.kv_heads"), 4);
  EXPECT_EQ(layer.integer("attention.head_dim"), 16);
  EXPECT_EQ(layer.real("attention.scale"), 0.25);
  EXPECT_TRUE(layer.flag("attention.causal"));
  EXPECT_TRUE(layer.flag("attention.qkv_bias"));
  EXPECT_TRUE(layer.flag("attention.o_bias"));
  EXPECT_EQ(layer.text("attention.rope"), "");
  EXPECT_EQ(layer.integer("ffn.d_ff"), 256);
  EXPECT_EQ(layer.text("ffn.activation"), "gelu");
  EXPECT_TRUE(layer.flag("ffn.bias"));
  EXPECT_EQ(layer.text("norm.type"), "layernorm");
  EXPECT_EQ(layer.real("norm.eps"), 1e-5);
  EXPECT_TRUE(layer.flag("norm.bias"));
  EXPECT_EQ(layer.real("residual.scale"), 1.0);
  EXPECT_EQ(node(module, "final_norm").attributes.text("final"), "yes");
}

TEST(Blocks, EmbeddingAndHeadAttributes) {
  const Module module = good("decoder_plain");
  const ir::Attributes& embedding = node(module, "embedding").attributes;
  EXPECT_EQ(embedding.text("table"), "tok_emb.weight");
  EXPECT_EQ(embedding.integer("vocab"), 100);
  EXPECT_EQ(embedding.real("scale"), 1.0);
  EXPECT_EQ(embedding.dim("tokens"), ir::Dim(ir::Symbol::T));
  EXPECT_EQ(embedding.text("position"), "learned");
  EXPECT_EQ(embedding.text("pos_table"), "pos_emb.weight");
  EXPECT_EQ(embedding.integer("max_seq"), 32);
  EXPECT_EQ(embedding.integer("types"), 0);
  EXPECT_FALSE(embedding.flag("norm"));
  const ir::Attributes& head = node(module, "head").attributes;
  EXPECT_EQ(head.text("type"), "lm");
  EXPECT_EQ(head.integer("out"), 100);
  EXPECT_FALSE(head.flag("bias"));
  EXPECT_EQ(head.text("tied"), "tok_emb.weight");
  const ir::Attributes& loss = node(module, "loss").attributes;
  EXPECT_EQ(loss.integer("ignore_index"), -100);
  EXPECT_EQ(loss.real("smoothing"), 0.0);
}

TEST(Blocks, EveryKeyArrives) {
  const Module module = good("decoder_all_keys");
  EXPECT_EQ(module.name, "everything");
  const ir::Attributes& layer = node(module, "layers.1").attributes;
  EXPECT_EQ(layer.text("placement"), "sandwich");
  EXPECT_EQ(layer.integer("attention.kv_heads"), 2);
  EXPECT_EQ(layer.integer("attention.head_dim"), 24);
  EXPECT_EQ(layer.real("attention.scale"), 0.1);
  EXPECT_FALSE(layer.flag("attention.qkv_bias"));
  EXPECT_TRUE(layer.flag("attention.o_bias"));
  EXPECT_EQ(layer.text("attention.rope"), "interleaved");
  EXPECT_EQ(layer.real("attention.rope_theta"), 5e5);
  EXPECT_EQ(layer.integer("ffn.d_ff"), 100);
  EXPECT_EQ(layer.text("ffn.activation"), "geglu");
  EXPECT_FALSE(layer.flag("ffn.bias"));
  EXPECT_EQ(layer.real("norm.eps"), 1e-6);
  EXPECT_FALSE(layer.flag("norm.bias"));
  EXPECT_EQ(layer.real("residual.scale"), 0.5);
  const ir::Attributes& embedding = node(module, "embedding").attributes;
  EXPECT_EQ(embedding.real("scale"), 8.0);
  EXPECT_EQ(embedding.text("position"), "rope");
  EXPECT_EQ(embedding.text("pos_table"), "");
  EXPECT_TRUE(embedding.flag("norm"));
  EXPECT_EQ(embedding.text("norm.prefix"), "emb_norm");
  EXPECT_EQ(embedding.real("norm.eps"), 1e-6);
  EXPECT_FALSE(has_node(module, "final_norm"));
  EXPECT_EQ(node(module, "head").attributes.text("tied"), "");
  EXPECT_TRUE(node(module, "head").attributes.flag("bias"));
  EXPECT_EQ(node(module, "loss").attributes.integer("ignore_index"), 0);
  EXPECT_EQ(node(module, "loss").attributes.real("smoothing"), 0.1);
}

TEST(Blocks, Facts) {
  const ir::Attributes facts = good("decoder_all_keys").facts;
  EXPECT_EQ(facts.text("kind"), "decoder");
  EXPECT_EQ(facts.integer("d_model"), 64);
  EXPECT_EQ(facts.integer("layers"), 2);
  EXPECT_EQ(facts.integer("vocab"), 300);
  EXPECT_EQ(facts.integer("max_seq"), 32);
  EXPECT_EQ(facts.text("head"), "lm");
  EXPECT_EQ(facts.integer("out_width"), 300);
  EXPECT_TRUE(facts.flag("mask"));
  EXPECT_TRUE(facts.flag("lengths"));
  EXPECT_FALSE(facts.flag("memory_input"));
  EXPECT_EQ(facts.integer("ignore_index"), 0);
  EXPECT_EQ(facts.text("init"), "gpt2");
  EXPECT_EQ(facts.real("init_std"), 0.01);
  EXPECT_EQ(facts.integer("batch"), 8);
  EXPECT_EQ(facts.integer("seq"), 16);
  EXPECT_EQ(facts.integer("src_seq"), 0);
  EXPECT_EQ(good("rope_half").facts.integer("max_seq"), 0);
}

TEST(Blocks, GatedWidthIsRoundedUp) {
  // 8/3 * 64 = 170.67, to a multiple of 64
  const Module module = good("activations");
  EXPECT_EQ(node(module, "layers.4").attributes.integer("ffn.d_ff"), 192);
  EXPECT_EQ(node(module, "layers.3").attributes.integer("ffn.d_ff"), 256);
  const Description llama = load_text(
      "[model]\nkind='decoder'\nd_model=4096\nlayers=1\nheads=32\nvocab=9\n"
      "max_seq=8\nd_ff_multiple=256\n[ffn]\nactivation='swiglu'\n");
  EXPECT_EQ(llama.defaults.ffn.d_ff, 11008);
}

TEST(Blocks, FinalNormFollowsPlacement) {
  EXPECT_FALSE(has_node(good("placement_post"), "final_norm"));
  EXPECT_EQ(node(good("placement_post_final"), "final_norm").attributes.text("final"), "yes");
  const Module undecided = good("placement_auto");
  EXPECT_EQ(node(undecided, "final_norm").attributes.text("final"), "auto");
  EXPECT_EQ(node(undecided, "final_norm").attributes.integer("depth"), 4);
  EXPECT_EQ(node(undecided, "layers.0").attributes.text("placement"), "auto");
  EXPECT_EQ(node(good("placement_auto_final"), "final_norm").attributes.text("final"), "yes");
  const Module mixed = good("placement_mixed");
  EXPECT_EQ(node(mixed, "layers.1").attributes.text("placement"), "post");
  EXPECT_FALSE(node(mixed, "layers.1").attributes.flag("norm.bias"));
  EXPECT_EQ(node(mixed, "layers.3").attributes.text("placement"), "pre");
  EXPECT_TRUE(node(mixed, "layers.3").attributes.flag("norm.bias"));
}

TEST(Blocks, WithoutVocabularyFloatsGoInAndOut) {
  const Module module = good("no_vocabulary");
  EXPECT_EQ(type(module, "x"), "f32[B,T,64]");
  EXPECT_EQ(outputs(module), "output");
  EXPECT_FALSE(has_node(module, "targets"));
  EXPECT_EQ(node(module, "embedding").attributes.text("table"), "");
  EXPECT_EQ(node(module, "embedding").attributes.text("position"), "none");
  EXPECT_EQ(node(module, "head").attributes.text("type"), "none");
  EXPECT_EQ(module.facts.integer("out_width"), 64);
  EXPECT_EQ(node(good("no_vocabulary_learned"), "embedding").attributes.text("pos_table"), "pos_emb.weight");
}

TEST(Blocks, Classifier) {
  const Module module = good("classifier_mean");
  EXPECT_EQ(type(module, "targets"), "i32[B]");
  EXPECT_EQ(type(module, "head"), "f32[B,10]");
  EXPECT_EQ(operands(module, "loss"), "head targets");
  EXPECT_EQ(node(module, "head").attributes.text("pool"), "mean");
  EXPECT_EQ(node(module, "head").attributes.text("tied"), "");
  EXPECT_FALSE(node(module, "layers.0").attributes.flag("attention.causal"));
  EXPECT_EQ(node(good("classifier_decoder"), "head").attributes.text("pool"), "last");
  EXPECT_EQ(node(good("classifier_of_floats"), "head").attributes.text("pool"), "first");
}

TEST(Blocks, MasksOnlyWhereDeclared) {
  const Module module = good("no_masks");
  EXPECT_FALSE(has_node(module, "mask"));
  EXPECT_EQ(operands(module, "layers.0"), "embedding");
  EXPECT_TRUE(has_node(good("classifier_mean"), "mask"));  // lengths alone
}

TEST(Blocks, TokenTypes) {
  const Module module = good("encoder_types");
  EXPECT_EQ(type(module, "types"), "i32[B,T]");
  EXPECT_EQ(operands(module, "embedding"), "tokens types mask");
  EXPECT_EQ(node(module, "embedding").attributes.integer("types"), 2);
}

TEST(Blocks, EncoderDecoder) {
  const Module module = good("encoder_decoder");
  EXPECT_EQ(type(module, "src"), "i32[B,S]");
  EXPECT_EQ(type(module, "tgt"), "i32[B,T]");
  EXPECT_EQ(type(module, "src_mask"), "u8[B,S]");
  EXPECT_EQ(type(module, "mask"), "u8[B,T]");
  EXPECT_EQ(type(module, "encoder.layers.1"), "f32[B,S,64]");
  EXPECT_EQ(operands(module, "encoder.layers.0"), "encoder.embedding _ src_mask");
  EXPECT_EQ(operands(module, "decoder.layers.0"), "decoder.embedding encoder.final_norm mask src_mask");
  EXPECT_EQ(operands(module, "head"), "decoder.final_norm mask");
  const ir::Attributes& encoder = node(module, "encoder.layers.1").attributes;
  const ir::Attributes& decoder = node(module, "decoder.layers.2").attributes;
  EXPECT_FALSE(encoder.flag("attention.causal"));
  EXPECT_FALSE(encoder.flag("cross"));
  EXPECT_EQ(encoder.integer("depth"), 2);
  EXPECT_TRUE(decoder.flag("attention.causal"));
  EXPECT_TRUE(decoder.flag("cross"));
  EXPECT_EQ(decoder.integer("depth"), 3);
  EXPECT_EQ(node(module, "encoder.embedding").attributes.text("table"), "tok_emb.weight");
  EXPECT_EQ(node(module, "encoder.embedding").attributes.dim("tokens"), ir::Dim(ir::Symbol::S));
  EXPECT_EQ(node(module, "decoder.embedding").attributes.text("pos_table"), "pos_emb.weight");
  EXPECT_EQ(module.facts.integer("encoder_layers"), 2);
  EXPECT_EQ(module.facts.integer("decoder_layers"), 3);
  EXPECT_EQ(module.facts.integer("src_vocab"), 100);
}

TEST(Blocks, SidesApartHaveTablesOfTheirOwn) {
  const Module module = good("encoder_decoder_apart");
  EXPECT_EQ(node(module, "encoder.embedding").attributes.text("table"), "src_emb.weight");
  EXPECT_EQ(node(module, "encoder.embedding").attributes.integer("vocab"), 80);
  EXPECT_EQ(node(module, "encoder.embedding").attributes.text("pos_table"), "src_pos_emb.weight");
  EXPECT_EQ(node(module, "decoder.embedding").attributes.text("table"), "tgt_emb.weight");
  EXPECT_EQ(node(module, "decoder.embedding").attributes.text("pos_table"), "tgt_pos_emb.weight");
  EXPECT_EQ(node(module, "head").attributes.text("tied"), "tgt_emb.weight");
  EXPECT_EQ(node(good("encoder_decoder_untied"), "head").attributes.text("tied"), "");
}

TEST(Blocks, MemoryTakesTheEncodersPlace) {
  const Module module = good("encoder_decoder_memory");
  EXPECT_EQ(type(module, "memory"), "f32[B,S,64]");
  EXPECT_FALSE(has_node(module, "src"));
  EXPECT_EQ(operands(module, "decoder.layers.0"), "decoder.embedding memory mask src_mask");
  EXPECT_EQ(node(module, "decoder.embedding").attributes.text("table"), "tok_emb.weight");
  EXPECT_TRUE(module.facts.flag("memory_input"));
  EXPECT_EQ(module.facts.integer("src_vocab"), 0);
}

TEST(Blocks, SourceOfFloats) {
  const Module both = good("encoder_decoder_floats"), source = good("encoder_decoder_floats_in");
  EXPECT_EQ(type(both, "src"), "f32[B,S,64]");
  EXPECT_EQ(type(both, "tgt"), "f32[B,T,64]");
  EXPECT_EQ(type(source, "src"), "f32[B,S,64]");
  EXPECT_EQ(type(source, "tgt"), "i32[B,T]");
  EXPECT_EQ(node(source, "encoder.embedding").attributes.text("pos_table"), "src_pos_emb.weight");
}

TEST(Blocks, PatternAndOverrides) {
  const Module module = good("pattern");
  EXPECT_EQ(node(module, "layers.0").attributes.integer("attention.kv_heads"), 2);
  EXPECT_EQ(node(module, "layers.2").attributes.integer("attention.kv_heads"), 4);
  EXPECT_EQ(node(module, "layers.2").attributes.integer("ffn.d_ff"), 192);
  EXPECT_EQ(node(module, "layers.2").attributes.real("residual.scale"), 0.5);
  EXPECT_EQ(node(module, "layers.3").attributes.integer("attention.kv_heads"), 2);
  EXPECT_TRUE(node(module, "layers.3").attributes.flag("attention.o_bias"));
  EXPECT_FALSE(node(module, "layers.6").attributes.flag("attention.o_bias"));
  const Module sides = good("encoder_decoder_layers");
  EXPECT_EQ(node(sides, "encoder.layers.0").attributes.integer("ffn.d_ff"), 32);
  EXPECT_EQ(node(sides, "decoder.layers.0").attributes.integer("ffn.d_ff"), 256);
  EXPECT_EQ(node(sides, "decoder.layers.2").attributes.integer("attention.kv_heads"), 2);
}

TEST(Blocks, WrittenOutBlock) {
  const Module module = good("block_parallel");
  EXPECT_EQ(operands(module, "layers.1.norm1"), "layers.0.out");
  EXPECT_EQ(operands(module, "layers.1.attn"), "layers.1.norm1 _ mask");
  EXPECT_EQ(operands(module, "layers.1.out"), "layers.0.out layers.1.attn layers.1.ffn");
  EXPECT_EQ(operands(module, "final_norm"), "layers.3.out");
  EXPECT_EQ(node(module, "layers.1.out").op, OpKind::BlockResidual);
  EXPECT_EQ(node(module, "layers.1.out").attributes.real("scale"), 0.5);
  const ir::Attributes& attention = node(module, "layers.1.attn").attributes;
  EXPECT_EQ(attention.text("prefix"), "layers.1.attn");
  EXPECT_EQ(attention.integer("head_dim"), 8);
  EXPECT_EQ(attention.real("scale"), 1 / std::sqrt(8.0));
  EXPECT_TRUE(attention.flag("causal"));
  EXPECT_EQ(node(module, "layers.1.ffn").attributes.text("activation"), "swiglu");
  EXPECT_EQ(node(module, "layers.3.ffn").attributes.text("activation"),
            "relu");  // [layers.3] has the last word
  EXPECT_EQ(node(module, "layers.1.norm1").attributes.text("final"), "");
}

TEST(Blocks, WrittenOutBlockReadsMemory) {
  const Module module = good("encoder_decoder_blocks");
  EXPECT_EQ(operands(module, "decoder.layers.0.attn"), "decoder.layers.0.norm1 _ mask");
  EXPECT_EQ(operands(module, "decoder.layers.0.cross"), "decoder.layers.0.norm2 encoder.final_norm src_mask");
  EXPECT_TRUE(node(module, "decoder.layers.0.attn").attributes.flag("causal"));
  EXPECT_FALSE(node(module, "decoder.layers.0.cross").attributes.flag("causal"));
  EXPECT_EQ(node(module, "decoder.layers.0.cross").attributes.integer("kv_heads"), 1);
  EXPECT_EQ(node(module, "encoder.layers.0").op, OpKind::BlockLayer);
}

TEST(Blocks, WrittenOutNodesOfEveryKind) {
  const Module module = good("block_written_gate");
  EXPECT_EQ(type(module, "layers.0.up"), "f32[B,T,128]");
  EXPECT_EQ(type(module, "layers.0.m"), "f32[B,T,128]");
  EXPECT_EQ(operands(module, "layers.0.m"), "layers.0.act layers.0.up");
  EXPECT_EQ(node(module, "layers.0.act").attributes.text("kind"), "silu");
  EXPECT_FALSE(node(module, "layers.0.up").attributes.flag("bias"));
  EXPECT_EQ(node(module, "layers.0.down").attributes.integer("out"), 64);
  EXPECT_EQ(operands(module, "layers.1.gate"), "layers.0.out");
}

TEST(Blocks, PlacesLeadBackToTheText) {
  const Module module = good("pattern");
  EXPECT_EQ(node(module, "layers.0").place.line, 10);  // [block.local]
  EXPECT_EQ(node(module, "layers.2").place.line, 13);  // [block.wide]
  EXPECT_EQ(node(module, "layers.6").place.line, 18);  // [layers.-1]
  EXPECT_EQ(node(good("block_parallel"), "layers.0.ffn").place.line, 14);
}

TEST(Blocks, DoublePrecision) {
  const Module module = build_blocks(load_text(decoder()), ir::DType::F64);
  EXPECT_EQ(module.real, ir::DType::F64);
  EXPECT_EQ(type(module, "layers.0"), "f64[B,T,64]");
}

}  // namespace
}  // namespace tfc::frontend::testing
