// `transformerc verify` as a user runs it: what it prints, its exit status, and the bits it tells. (Models of
// every kind are verified by tests/models.)
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace tfc::test {
namespace {

const char* const kPair =
    "[model]\nkind = \"encoder-decoder\"\nd_model = 16\nencoder_layers = 1\ndecoder_layers = 1\nheads = 4\n"
    "vocab = 12\nmax_seq = 10\n[ffn]\nactivation = \"swiglu\"\n";

Result verify(const std::string& text, std::vector<std::string> flags) {
  const Folder folder;
  folder.write("checked.toml", text);
  flags.insert(flags.begin(), {"verify", "checked.toml"});
  return folder.run(flags);
}

std::string bits_of(const std::string& text, std::vector<std::string> flags) {
  flags.push_back("--json");
  const Result result = verify(text, flags);
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  const size_t at = result.out.find("\"bits\": \"");
  return at == std::string::npos ? "none" : result.out.substr(at + 9, result.out.find('"', at + 9) - at - 9);
}

}  // namespace

TEST(Verify, SaysWhatItComparedAndTheGreatestError) {
  const Result result = verify(kPair, {"--precision=f64"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out.rfind("checked: compiled f64 code against the float64 interpreter, B=2 T=9 S=7\n", 0),
            0u)
      << result.out;
  for (const char* group : {"infer", "last", "loss", "logprobs", "train", "vjp", "finite differences", "step",
                            "decode", "threads"}) {
    EXPECT_NE(result.out.find("\n  " + std::string(group) + " "), std::string::npos) << group;
  }
  EXPECT_NE(result.out.find("\nverified (finite differences: "), std::string::npos) << result.out;
}

TEST(Verify, JsonListsEveryComparison) {
  const Result result = verify(kTinyDecoder, {"--json", "--at", "B=1,T=5"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_EQ(result.out.rfind("{\"model\": \"checked\", \"precision\": \"f32\", \"B\": 1, \"T\": 5, ", 0), 0u)
      << result.out;
  for (const char* name : {"output", "grads:layers.1.ffn.up.weight", "params:tok_emb.weight", "4 as 1"}) {
    EXPECT_NE(result.out.find("\"name\": \"" + std::string(name) + "\""), std::string::npos) << name;
  }
}

// Levels and memory may be chosen as one likes: results are the same to the bit.
TEST(Verify, BitsDoNotDependOnTheLevelOrOnMemory) {
  for (const char* text : {kTinyDecoder, kPair}) {
    const std::string bits = bits_of(text, {});
    EXPECT_EQ(bits_of(text, {"-O0"}), bits);
    EXPECT_EQ(bits_of(text, {"-O3"}), bits);
    EXPECT_EQ(bits_of(text, {"--disable=reuse-memory"}), bits);
    EXPECT_NE(bits_of(text, {"--precision=f64"}), bits);
  }
}

// A pass may be switched off; what it would have done changes no bit.
TEST(Verify, BitsDoNotDependOnAPassThatMayBeLeftOut) {
  const Folder folder;
  const std::string help = folder.run({"help", "passes"}).out;
  std::vector<std::string> optional;
  for (size_t start = help.find('\n') + 1; start < help.size(); start = help.find('\n', start) + 1) {
    if (help[start] == ' ') optional.push_back(help.substr(start + 2, help.find(' ', start + 2) - start - 2));
  }
  ASSERT_GE(optional.size(), 3u) << help;
  const std::string bits = bits_of(kPair, {});
  for (const std::string& pass : optional) EXPECT_EQ(bits_of(kPair, {"--disable=" + pass}), bits) << pass;
}

TEST(Verify, DescriptionErrorsAreTheUsers) {
  const Result result = verify("[model]\nkind = \"decoder\"\n", {});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("checked.toml:1:1: error: "), std::string::npos) << result.err;
}

}  // namespace tfc::test
