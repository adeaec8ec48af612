// What a description edits goes through a node of its own, in every entry that has the value.
#include "ir/edits.h"

#include <gtest/gtest.h>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Graph;
using ir::Module;
using ir::NodeId;
using ir::OpKind;
using ir::Phase;

using Names = std::vector<std::string>;

Module edited(const Model& model, const Names& patterns, Phase phase) {
  Module module = blocks(model);
  for (const std::string& pattern : patterns) module.edits.push_back({pattern, {}});
  run_to(module, phase);
  EXPECT_TRUE(module.edits.empty());
  return module;
}

Names names_in(const Module& module, const std::string& entry) {
  Names names;
  for (const ir::EditedValue& value : ir::edited_values(module.entry(entry)->graph))
    names.push_back(value.name);
  return names;
}

TEST(AddEdits, ReadersReadWhatWasMadeOfTheValue) {
  Module module = blocks({});
  module.taps.push_back({"layers.0.attn.[qo]", {}});
  module.edits.push_back({"layers.0.attn.[qo]", {}});
  run_to(module, Phase::Ops);
  EXPECT_EQ(ir::edited_names(module), (Names{"layers.0.attn.o", "layers.0.attn.q"}));
  const Graph& graph = module.entry("model")->graph;
  const NodeId edit = graph.find("layers.0.attn.o.edited"), value = graph.find("layers.0.attn.o");
  ASSERT_TRUE(edit.valid() && value.valid());
  EXPECT_EQ(graph.users(value), std::vector<NodeId>{edit});
  EXPECT_FALSE(graph.users(edit).empty());
  EXPECT_EQ(graph.output("tap:layers.0.attn.o").node, edit);
  EXPECT_EQ(graph.output("tap:layers.0.attn.q").node, graph.find("layers.0.attn.q.edited"));
  EXPECT_FALSE(graph.operand(edit, 3).valid()) << "no mask, no padding";
}

TEST(AddEdits, EveryEntryThatHasTheValueEditsIt) {
  const Module module = edited({.kind = "encoder-decoder"},
                               {"encoder.layers.0.ffn.down", "decoder.layers.1.cross"}, Phase::Joint);
  const Names both = {"decoder.layers.1.cross", "encoder.layers.0.ffn.down"};
  for (const char* entry : {"infer", "last", "loss", "logprobs", "train", "vjp"})
    EXPECT_EQ(names_in(module, entry), both) << entry;
  EXPECT_EQ(names_in(module, "decode"), (Names{both[0]}));
  EXPECT_EQ(names_in(module, "encode"), (Names{both[1]}));
  EXPECT_TRUE(names_in(module, "step").empty());
  const Graph& train = module.entry("train")->graph;
  EXPECT_EQ(train.node(train.find(both[0] + ".edited.dx")).op, OpKind::EditGrad);
}

TEST(AddEdits, TokensAreEditedAlone) {
  const Module module = edited({.mask = true}, {"layers.0.ffn.down"}, Phase::Joint);
  for (const char* entry : {"infer", "train", "decode"}) {
    const Graph& graph = module.entry(entry)->graph;
    EXPECT_EQ(graph.operand(graph.find("layers.0.ffn.down.edited"), 3).node, graph.find("mask")) << entry;
  }
}

/// A bias of keys that are edited counts where they are not.
TEST(AddEdits, KeepTheGradientOfTheKeysBias) {
  const auto cancelled = [](const Names& patterns) {
    const Module module = edited({}, patterns, Phase::Joint);
    int count = 0;
    for (NodeId id : module.entry("train")->graph.nodes())
      count += module.entry("train")->graph.node(id).attributes.has("cancelled");
    return count;
  };
  EXPECT_EQ(cancelled({"layers.0.attn.o"}), 2);
  EXPECT_EQ(cancelled({"layers.0.attn.k"}), 1);
  EXPECT_EQ(cancelled({"layers.*.attn.q+k+v"}), 0);
}

TEST(AddEdits, ChangeNothingInTheInterpreterUntilTheyAreSet) {
  for (const char* kind : {"decoder", "encoder-decoder"}) {
    const Model model{.kind = kind, .mask = true};
    const Module plain = compiled(model, Phase::Joint), module = edited(model, {"*"}, Phase::Fused);
    ir::Interpreter expected = random_inputs(plain, *plain.entry("train"), small_point());
    ir::Interpreter found = random_inputs(module, *module.entry("train"), small_point());
    expected.run(plain.entry("train")->graph);
    found.run(module.entry("train")->graph);
    EXPECT_NEAR(found.output("loss.sum")[0], expected.output("loss.sum")[0], 1e-12);
  }
}

std::string errors_of(const Model& model, const std::string& pattern) {
  Module module = blocks(model);
  module.edits.push_back({pattern, {}});
  ir::Diagnostics diagnostics;
  EXPECT_FALSE(run_pipeline(module, Phase::Ops, {}, diagnostics)) << pattern;
  return diagnostics.text();
}

TEST(AddEdits, WhatMatchesNothingIsAnError) {
  EXPECT_EQ(errors_of({}, "layers.0.atn"),
            "transformerc: error: edits: no value is named by 'layers.0.atn'\n"
            "note: did you mean 'layers.0.attn'?\n"
            "note: --emit=ir:ops lists the values\n");
  EXPECT_NE(errors_of({}, "layers.[0").find("is no glob"), std::string::npos);
}

TEST(AddEdits, WhatCanBeTappedAloneIsRefused) {
  EXPECT_EQ(errors_of({}, "*.attn.weights"),
            "transformerc: error: edits: 'layers.1.attn.weights' is computed for taps alone, so it cannot be "
            "edited\n");
  EXPECT_NE(errors_of({}, "head.logits").find("is a head's answer, which no loss reads"), std::string::npos);
  EXPECT_NE(errors_of({.mask = true}, "head.masked").find("is a head's answer"), std::string::npos);
  EXPECT_NE(errors_of({.head = "none", .mask = true}, "*masked").find("is a head's answer"),
            std::string::npos);
  EXPECT_NE(errors_of({}, "embedding.positions").find("is a table of positions"), std::string::npos);
}

}  // namespace
}  // namespace tfc::passes::testing
