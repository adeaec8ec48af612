// What a description taps becomes outputs, by the names that the dump has and those that values had before.
#include <gtest/gtest.h>

#include "ir/taps.h"
#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Module;
using ir::Phase;

Module tapped_blocks(const Model& model, const std::vector<std::string>& patterns) {
  Module module = blocks(model);
  for (const std::string& pattern : patterns) module.taps.push_back({pattern, {}});
  return module;
}

using Names = std::vector<std::string>;

/// Outputs of one entry that are taps.
Names taps(const Module& module, const std::string& entry) {
  Names names;
  for (const ir::Output& output : module.entry(entry)->graph.outputs) {
    if (ir::is_tap(output.name)) names.push_back(output.name);
  }
  return names;
}

Names tapped(const Model& model, const std::vector<std::string>& patterns, Phase phase, const std::string& entry) {
  Module module = tapped_blocks(model, patterns);
  run_to(module, phase);
  EXPECT_TRUE(module.taps.empty());
  return taps(module, entry);
}

TEST(AddTaps, NamesAndGlobs) {
  EXPECT_EQ(tapped({}, {"layers.?.ffn.down", "layers.1.ffn.down"}, Phase::Ops, "model"),
            (Names{"tap:layers.0.ffn.down", "tap:layers.1.ffn.down"}));
  EXPECT_EQ(tapped({}, {"layers.0.attn*"}, Phase::Ops, "model"),
            (Names{"tap:layers.0.attn.q+k+v", "tap:layers.0.attn.q", "tap:layers.0.attn.k", "tap:layers.0.attn.v",
                   "tap:layers.0.attn", "tap:layers.0.attn.weights", "tap:layers.0.attn.o"}));
  EXPECT_TRUE(tapped({}, {}, Phase::Ops, "model").empty());
}

TEST(AddTaps, EveryEntryThatHasTheValueShowsIt) {
  const Module module = [] {
    Module made = tapped_blocks({.kind = "encoder-decoder"}, {"encoder.layers.0.ffn.down", "decoder.layers.1.cross.weights"});
    run_to(made, Phase::Joint);
    return made;
  }();
  const Names both = {"tap:encoder.layers.0.ffn.down", "tap:decoder.layers.1.cross.weights"};
  for (const char* entry : {"infer", "last", "loss", "logprobs"}) EXPECT_EQ(taps(module, entry), both) << entry;
  for (const char* entry : {"train", "vjp"}) {
    EXPECT_EQ(taps(module, entry), (Names{both[0], both[1], "tap_grad:encoder.layers.0.ffn.down"})) << entry;
  }
  EXPECT_EQ(taps(module, "decode"), (Names{both[1]}));
  EXPECT_EQ(taps(module, "encode"), (Names{both[0]}));
  EXPECT_TRUE(taps(module, "step").empty());
  EXPECT_EQ(ir::tapped_names(module), (Names{"encoder.layers.0.ffn.down", "decoder.layers.1.cross.weights"}));
}

TEST(AddTaps, SurviveFusionInBuffersThatLiveToTheEnd) {
  Module module = tapped_blocks({}, {"*"});
  run_to(module, Phase::Planned);
  for (const ir::Entry& entry : module.entries) {
    EXPECT_EQ(entry.plan->taps.size(), taps(module, entry.name).size()) << entry.name;
    for (const ir::Tap& tap : entry.plan->taps) {
      const ir::Buffer& buffer = entry.plan->buffers[static_cast<size_t>(tap.buffer)];
      EXPECT_EQ(buffer.last + 1, static_cast<int>(entry.plan->records.size())) << entry.name << ": " << tap.name;
    }
  }
  EXPECT_GT(module.entry("train")->plan->taps.size(), 60u);
}

std::string errors_of(const Model& model, const std::string& pattern) {
  Module module = tapped_blocks(model, {pattern});
  ir::Diagnostics diagnostics;
  EXPECT_FALSE(run_pipeline(module, Phase::Ops, {}, diagnostics)) << pattern;
  return diagnostics.text();
}

TEST(AddTaps, WhatMatchesNothingIsAnError) {
  EXPECT_EQ(errors_of({}, "layers.0.attn.weight"),
            "transformerc: error: taps: no value is named by 'layers.0.attn.weight'\n"
            "note: did you mean 'layers.0.attn.weights'?\n"
            "note: --emit=ir:ops lists the values; the weights of an attention NAME are 'NAME.weights'\n");
  EXPECT_NE(errors_of({}, "layers.[0").find("is no glob"), std::string::npos);
  for (const char* pattern : {"", "layers.0", "tokens", "layers.0.attn.o.weight", "*.cross.weights"})
    EXPECT_NE(errors_of({}, pattern).find("no value is named by"), std::string::npos) << pattern;
}

TEST(MaskTaps, PaddingIsShownAsZeros) {
  Module module = tapped_blocks({.mask = true}, {"layers.0.ffn.down"});
  run_to(module, Phase::Joint);
  for (const char* entry : {"infer", "train", "decode"}) {
    const ir::Graph& graph = module.entry(entry)->graph;
    for (const std::string& name : taps(module, entry))
      EXPECT_EQ(graph.node(graph.output(name).node).op, ir::OpKind::MaskRows) << entry << ": " << name;
  }
}

}  // namespace
}  // namespace tfc::passes::testing
