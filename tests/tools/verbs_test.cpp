// norms, train and bench: what they print, and numbers that are known.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tools/run_program.h"

namespace tfc::test {
namespace {

// The number that follows `key` after the first place of `context`; NaN where there is none.
double number_after(const std::string& text, const std::string& context, const std::string& key) {
  const size_t from = text.find(context);
  const size_t at = from == std::string::npos ? from : text.find(key, from);
  return at == std::string::npos ? NAN : std::strtod(text.c_str() + at + key.size(), nullptr);
}

const char* const kTwelveLayers =
    "[model]\nkind = \"encoder\"\nd_model = 512\nlayers = 12\nheads = 8\nd_ff = 2048\n[position]\ntype = "
    "\"none\"\n"
    "[ffn]\nactivation = \"relu\"\n[train]\ninit = \"torch\"\n";

}  // namespace

// At initialisation Post-LN keeps unit deviation; Pre-LN's residual stream grows by what each layer adds.
TEST(Norms, TwelveLayersOfWidth512) {
  const Folder folder;
  folder.write("deep.toml", kTwelveLayers);
  const Result result = folder.run({"norms", "deep.toml", "--at", "B=8,T=32", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string post = result.out.substr(result.out.find("\"post\": ["),
                                             result.out.find("\"pre\": [") - result.out.find("\"post\": ["));
  const std::string pre = result.out.substr(
      result.out.find("\"pre\": ["), result.out.find("\"sandwich\": [") - result.out.find("\"pre\": ["));
  for (int layer = 1; layer <= 12; ++layer) {
    const std::string name = "\"layer\": \"" + std::to_string(layer) + "\"";
    EXPECT_NEAR(number_after(post, name, "\"std\": "), 1.0, 0.01) << layer;
    EXPECT_GT(number_after(post, name, "\"gradient\": "), 0) << layer;
    EXPECT_GT(number_after(pre, name, "\"gradient\": "), 0) << layer;
  }
  EXPECT_NEAR(number_after(pre, "\"layer\": \"1\"", "\"std\": "), 1.03, 0.05);
  EXPECT_NEAR(number_after(pre, "\"layer\": \"6\"", "\"std\": "), 1.20, 0.05);
  EXPECT_NEAR(number_after(pre, "\"layer\": \"12\"", "\"std\": "), 1.42, 0.05);
}

TEST(Norms, EncoderAndDecoderInOneTable) {
  const Folder folder;
  folder.write("pair.toml",
               "[model]\nkind = \"encoder-decoder\"\nd_model = 16\nencoder_layers = 2\ndecoder_layers = 1\n"
               "heads = 2\nvocab = 9\nmax_seq = 8\n");
  const Result result = folder.run({"norms", "pair.toml", "--at", "B=2,T=4,S=5"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* row : {"encoder 1 ", "encoder 2 ", "decoder 1 "}) {
    EXPECT_NE(result.out.find("\n" + std::string(row)), std::string::npos) << result.out;
  }
}

TEST(Train, ReversesUnseenSequences) {
  const Folder folder;
  folder.write("backwards.toml",
               "[model]\nkind = \"encoder-decoder\"\nd_model = 32\nencoder_layers = 1\ndecoder_layers = 1\n"
               "heads = 4\nvocab = 8\nmax_seq = 6\n[train]\ninit = \"xavier\"\n"
               "[run]\ntask = \"reverse\"\nlength = 4\nexamples = 600\nepochs = 12\nbatch = 16\nlr = 3e-3\n");
  const Result result = folder.run({"train", "backwards.toml"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("epoch  12 "), std::string::npos) << result.out;
  EXPECT_GT(number_after(result.out, "epoch  12 ", "reversed"), 95) << result.out;
}

TEST(Train, LearnsAText) {
  const Folder folder;
  std::string text;
  for (int line = 0; line < 200; ++line)
    text += "the quick brown fox jumps over the lazy dog " + std::to_string(line % 10) + "\n";
  folder.write("fox.txt", text);
  folder.write("fox_model.toml",
               "[model]\nkind = \"decoder\"\nd_model = 32\nlayers = 1\nheads = 4\nvocab = 256\nmax_seq = 48\n"
               "[run]\ntask = \"text\"\ndata = \"fox.txt\"\nsteps = 120\nbatch = 8\nseq = 48\nlr = 1e-2\n"
               "report = 60\nsample = 40\nprompt = \"the \"\ntemperature = 0.0\n");
  const Result result = folder.run({"train", "fox_model.toml", "--threads=2"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_LT(number_after(result.out, "step    120", "loss "),
            0.5 * number_after(result.out, "step     60", "loss "))
      << result.out;
  EXPECT_LT(number_after(result.out, "step    120", "validation "), 0.5) << result.out;
  EXPECT_NE(result.out.find("quick brown fox"), std::string::npos) << result.out;
}

TEST(Train, SaysWhatItNeeds) {
  const Folder folder;
  folder.write("plain.toml", kTinyDecoder);
  const Result result = folder.run({"train", "plain.toml"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "plain.toml:1:1: error: there is no [run]: it says what to train on, such as task = \"text\" and "
            "data = \"book.txt\"\n[model]\n^~~~~~~\n");
  folder.write("lost.toml",
               "[model]\nkind = \"decoder\"\nd_model = 16\nlayers = 1\nheads = 2\nvocab = 256\nmax_seq = 8\n"
               "[run]\ntask = \"text\"\ndata = \"nowhere.txt\"\n");
  const Result lost = folder.run({"train", "lost.toml"});
  EXPECT_EQ(lost.status, 74);
  EXPECT_EQ(lost.err, "transformerc: error: cannot read 'nowhere.txt': No such file or directory\n");
}

TEST(Bench, SetsFiguresBesideTheMachine) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result = folder.run({"bench", "tiny.toml", "--seconds=0.05", "--threads=1"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"tiny: f32, B=8 T=12, 1 threads, ", "\nmachine, now: ", "\nforward ",
                           "\ntraining step ", "\ndecode ", "\nbytes: parameters "}) {
    EXPECT_NE(("\n" + result.out).find(part), std::string::npos) << part << "\n" << result.out;
  }
  const Result json = folder.run({"bench", "tiny.toml", "--seconds=0.05", "--json"});
  EXPECT_GT(number_after(json.out, "\"machine\"", "\"flops\": "), 1e8) << json.out;
  EXPECT_GT(number_after(json.out, "\"training step\"", "\"tokens_per_second\": "), 0) << json.out;
}

TEST(Bench, EveryKernelOfACall) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result text =
      folder.run({"bench", "tiny.toml", "--seconds=0.05", "--threads=1", "--kernels", "--figures=step"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part : {"\ntraining step: ", " train  layers.*.attn.q+k+v  product{",
                           " step   adamw  adamw{", " % between kernels\n"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  EXPECT_EQ(text.out.find("\nforward "), std::string::npos) << text.out;

  const Result json = folder.run({"bench", "tiny.toml", "--seconds=0.05", "--kernels", "--json", "--at",
                                  "B=2,T=12", "--figures=forward,decode"});
  ASSERT_EQ(json.status, 0) << json.err;
  const std::string forward = json.out.substr(json.out.find("\"kernels\""));
  // 2 x tokens x D x 4 D, of one layer; each layer has its own record.
  EXPECT_EQ(number_after(forward, "\"layers.0.ffn.up+gelu\"", "\"flops\": "), 2 * 24 * 16 * 64) << json.out;
  EXPECT_EQ(number_after(forward, "\"layers.1.ffn.up+gelu\"", "\"calls\": "), 1);
  EXPECT_GT(number_after(forward, "\"layers.1.ffn.up+gelu\"", "\"seconds\": "), 0);
  const std::string decode = forward.substr(forward.find("\"figure\": \"decode\""));
  EXPECT_EQ(number_after(decode, "\"layers.0.ffn.up+gelu\"", "\"flops\": "), 2 * 2 * 16 * 64) << json.out;
}

TEST(Bench, OnlyFiguresThatTheModelHas) {
  const Folder folder;
  folder.write("pair.toml",
               "[model]\nkind = \"encoder\"\nd_model = 16\nlayers = 1\nheads = 2\nvocab = 9\nmax_seq = 8\n");
  const Result missing = folder.run({"bench", "pair.toml", "--figures=decode", "--seconds=0.01"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("there is no figure 'decode' of this model"), std::string::npos) << missing.err;
  const Result unknown = folder.run({"bench", "pair.toml", "--figures=decod"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("--figures is one of forward, padded, step, padded-step, decode, drift; got 'decod'"),
            std::string::npos)
      << unknown.err;
  const Result drift =
      folder.run({"bench", "pair.toml", "--figures=drift", "--at", "B=1,T=4", "--threads=1"});
  EXPECT_EQ(drift.status, 0) << drift.err;
  EXPECT_NE(drift.out.find("\nstep 1000 "), std::string::npos) << drift.out;
}

}  // namespace tfc::test
