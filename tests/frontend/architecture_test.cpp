// What weights must agree on besides names and shapes: what counts, what does not, and that it is the same
// however it was written.
#include "frontend/architecture.h"

#include <gtest/gtest.h>

#include "frontend/load.h"
#include "frontend/resolved_toml.h"

namespace tfc::frontend {
namespace {

constexpr const char* kModel = R"(
[model]
kind = "decoder"
d_model = 16
layers = 4
heads = 2
vocab = 11
max_seq = 8
)";

std::string_view deep_is_pre(int64_t depth) { return depth > 3 ? "pre" : "post"; }

std::string architecture_of(const std::string& text) {
  ir::Diagnostics diagnostics;
  const auto description =
      load_description(std::make_shared<ir::SourceFile>(ir::SourceFile{"model.toml", text}), {}, diagnostics);
  EXPECT_TRUE(description) << diagnostics.text();
  return description ? architecture(resolved_toml(*description), deep_is_pre) : "";
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Architecture, HasWhatShapesDoNotShow) {
  const std::string lines = architecture_of(kModel);
  for (const char* line : {"attention.heads = 2", "attention.kv_heads = 2", "ffn.activation = \"gelu\"",
                           "model.kind = \"decoder\"", "norm.eps = 1e-05", "norm.placement = \"pre\"",
                           "norm.type = \"layernorm\"", "position.type = \"learned\""}) {
    EXPECT_TRUE(has(lines, line)) << line << "\n" << lines;
  }
  EXPECT_EQ(lines.find("name"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("init"), std::string::npos) << lines;
  EXPECT_EQ(lines.find(" = 0\n"), std::string::npos) << lines;
}

TEST(Architecture, LeavesOutWhatDoesNotMatter) {
  EXPECT_EQ(architecture_of(std::string(kModel) +
                            "name = \"other\"\n[train]\nfreeze = [\"embedding\"]\ninit = \"xavier\"\n"
                            "[loss]\nlabel_smoothing = 0.1\n[inputs]\nmask = false\n"
                            "[shapes]\nbatch = 2\n"),
            architecture_of(kModel));
}

TEST(Architecture, IsTheSameHoweverLayersAreWritten) {
  const std::string plain =
      architecture_of(std::string(kModel) + "[attention]\nscale = 0.5\n[ffn]\nbias = false\n");
  EXPECT_EQ(architecture_of(std::string(kModel) +
                            "pattern = [\"a\", \"b\"]\n"
                            "[block.a]\nattention = { scale = 0.5 }\nffn = { bias = false }\n"
                            "[block.b]\nattention = { scale = 0.5 }\nffn = { bias = false }\n"),
            plain);
  EXPECT_NE(architecture_of(kModel), plain);
}

TEST(Architecture, SaysWhichLayersDiffer) {
  const std::string lines = architecture_of(std::string(kModel) +
                                            "[layers.1-2]\nattention = { heads = 4 }\n[layers.3]\n"
                                            "ffn = { activation = \"relu\" }\n");
  EXPECT_TRUE(has(lines, "attention.heads = 2 in layers 0, 3; 4 in layers 1-2")) << lines;
  EXPECT_TRUE(has(lines, "ffn.activation = \"gelu\" in layers 0-2; \"relu\" in layer 3")) << lines;
}

TEST(Architecture, OfBlocksThatAreWrittenOut) {
  const std::string lines = architecture_of(std::string(kModel) + R"(pattern = ["own"]
[block.own]
nodes = [
  { id = "n", op = "norm", in = "x" },
  { id = "a", op = "attention", in = "n", heads = 4 },
  { id = "out", op = "residual", in = ["x", "a"], scale = 0.5 },
]
)");
  EXPECT_TRUE(has(lines, "nodes.a.heads = 4")) << lines;
  EXPECT_TRUE(has(lines, "nodes.out.scale = 0.5")) << lines;
  EXPECT_TRUE(has(lines, "nodes.out.in = [\"x\", \"a\"]")) << lines;
}

TEST(Architecture, BothSidesAndWhatAutoMeans) {
  const std::string lines = architecture_of(
      "[model]\nkind = \"encoder-decoder\"\nd_model = 16\nencoder_layers = 4\ndecoder_layers = 2\nheads = "
      "2\nvocab = 11\n"
      "max_seq = 8\n[norm]\nplacement = \"auto\"\n");
  EXPECT_TRUE(has(lines, "encoder.norm.placement = \"pre\"")) << lines;
  EXPECT_TRUE(has(lines, "decoder.norm.placement = \"post\"")) << lines;
}

TEST(Architecture, OfNoDescriptionIsNothing) {
  EXPECT_EQ(architecture("", deep_is_pre), "");
  EXPECT_EQ(architecture("[model", deep_is_pre), "");
}

}  // namespace
}  // namespace tfc::frontend
