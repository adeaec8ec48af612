// The figures that people know by heart.
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace tfc::test {
namespace {

std::string report_of(const std::string& text) {
  const Folder folder;
  folder.write("known.toml", text);
  const Result result = folder.run({"known.toml", "--emit=report", "-o", "-"});
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

// The line of the report that begins with `label`, its blanks squeezed.
std::string line_of(const std::string& report, const std::string& label) {
  size_t start = 0;
  while (start < report.size()) {
    const size_t end = report.find('\n', start);
    std::string squeezed;
    for (const char c : report.substr(start, end - start)) {
      if (c != ' ' || (!squeezed.empty() && squeezed.back() != ' ')) squeezed += c;
    }
    if (squeezed.rfind(label, 0) == 0) return squeezed;
    if (end == std::string::npos) break;
    start = end + 1;
  }
  return "no line begins with '" + label + "' in\n" + report;
}

}  // namespace

TEST(Report, EncoderLayerOfWidth512) {
  const std::string report = report_of(
      "[model]\nkind = \"encoder\"\nd_model = 512\nlayers = 1\nheads = 8\nd_ff = 2048\n"
      "[norm]\nplacement = \"post\"\n");
  EXPECT_EQ(line_of(report, "layers.0"), "layers.0 3,152,384 100.0 %");
  EXPECT_EQ(line_of(report, "attn"), "attn, of its layer 1,050,624 33.3 %");
  EXPECT_EQ(line_of(report, "ffn"), "ffn, of its layer 2,099,712 66.6 %");
  EXPECT_EQ(line_of(report, "norms"), "norms, of its layer 2,048 0.1 %");
}

TEST(Report, SixAndSixLayers) {
  const std::string report = report_of(
      "[model]\nkind = \"encoder-decoder\"\nd_model = 512\nencoder_layers = 6\ndecoder_layers = 6\nheads = "
      "8\n"
      "d_ff = 2048\n[norm]\nplacement = \"post\"\n");
  EXPECT_EQ(line_of(report, "total"), "total 44,138,496 100.0 %");
  EXPECT_EQ(line_of(report, "encoder.layers.0-5"), "encoder.layers.0-5 18,914,304 42.9 %");
}

TEST(Report, SizesStayWithinMaxSeq) {
  const Folder folder;
  folder.write("tiny.toml", "[model]\nkind = \"decoder\"\nd_model = 8\nlayers = 1\nheads = 1\nvocab = 5\nmax_seq = 8\n");
  const Result result = folder.run({"tiny.toml", "--emit=report", "-o", "-", "--at", "B=2,T=9"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "transformerc: error: --at: T is 9, expected at most 8 (max_seq)\n");
  EXPECT_EQ(result.out, "");
  const Result most = folder.run({"tiny.toml", "--emit=report", "-o", "-", "--at", "B=3"});
  EXPECT_EQ(most.out.substr(0, most.out.find('\n')), "tiny: decoder, f32, at B=3, T=8");
}

TEST(Report, Gpt2Small) {
  const std::string report = report_of(
      "[model]\nkind = \"decoder\"\nd_model = 768\nlayers = 12\nheads = 12\nvocab = 50257\n"
      "max_seq = 1024\n");
  EXPECT_EQ(line_of(report, "total"), "total 124,439,808 100.0 %");
  EXPECT_EQ(line_of(report, "tok_emb"), "tok_emb 38,597,376 31.0 %");
  EXPECT_EQ(line_of(report, "gradients"), "gradients 497,759,232 from the first backward on");
}

TEST(Report, WorkspaceStandsBesideItsLowerBound) {
  const std::string report = report_of(kTinyDecoder);
  for (const char* entry : {"infer", "last", "loss", "logprobs", "train", "vjp", "step", "decode"}) {
    EXPECT_EQ(line_of(report, std::string(entry) + " ").rfind(entry, 0), 0u)
        << line_of(report, std::string(entry) + " ");
  }
  EXPECT_EQ(line_of(report, "expand").rfind("expand changed", 0), 0u) << line_of(report, "expand");
}

constexpr const char* kDecoder =
    "[model]\nkind = \"decoder\"\nd_model = 64\nlayers = 2\nheads = 4\nvocab = 100\nmax_seq = 64\n";

TEST(Report, WhatIsFrozenHasNoGradients) {
  const std::string report =
      report_of(std::string(kDecoder) + "[train]\nfreeze = [\"embedding\", \"layers.0\"]\n");
  EXPECT_EQ(line_of(report, "total"), "total 110,592 100.0 %");
  EXPECT_EQ(line_of(report, "frozen"), "frozen 60,480 54.7 %");
  EXPECT_EQ(line_of(report, "gradients"), "gradients 200,448 from the first backward on");
  EXPECT_EQ(line_of(report, "moments"), "moments 400,896 from the first step on");
}

TEST(Report, WhatIsComputedAgain) {
  const std::string nothing = report_of(kDecoder);
  EXPECT_EQ(nothing.find("computed again"), std::string::npos);
  const std::string report = report_of(std::string(kDecoder) + "[train]\nrecompute = \"all\"\n");
  EXPECT_NE(report.find("\ncomputed again by the backward\n  train "), std::string::npos) << report;
  EXPECT_NE(report.find("bytes not kept, of attention 2, layer_norm 8, linear 4, product 2\n"),
            std::string::npos)
      << report;
}

}  // namespace tfc::test
