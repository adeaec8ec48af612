// Reading: overrides, extends, names, and texts that nobody would write.
#include "frontend/load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "frontend/model_name.h"
#include "frontend/resolved_toml.h"
#include "frontend/testing.h"

namespace tfc::frontend::testing {
namespace {

TEST(Sets, OverrideKeysAndTakeTomlValues) {
  const Description d =
      load_text(decoder("", "[norm]\neps = 1e-6\n"),
                {"model.layers=2", "norm.placement=post", "model.name=\"tiny\"", "model.kind=encoder",
                 "attention={ bias = false, scale = 0.5 }", "layers.1.ffn.d_ff=32"});
  EXPECT_EQ(d.layers.size(), 2u);
  EXPECT_EQ(d.model.name, "tiny");
  EXPECT_EQ(d.model.kind, "encoder");
  EXPECT_EQ(d.defaults.norm.placement, "post");
  EXPECT_EQ(d.defaults.norm.eps, 1e-6);
  EXPECT_EQ(d.defaults.attention.scale, 0.5);
  EXPECT_FALSE(d.defaults.attention.qkv_bias);
  EXPECT_EQ(d.layers[0].settings.ffn.d_ff, 256);
  EXPECT_EQ(d.layers[1].settings.ffn.d_ff, 32);
}

TEST(Sets, LaterOnesWin) {
  EXPECT_EQ(load_text(decoder(), {"model.layers=2", "model.layers=3"}).layers.size(), 3u);
}

TEST(Sets, CanNameAPattern) {
  const Description d =
      load_text(decoder("", "[block.wide]\nffn = { d_ff = 512 }\n"), {"model.pattern=[\"wide\"]"});
  EXPECT_EQ(d.layers[3].settings.ffn.d_ff, 512);
  EXPECT_EQ(d.layers[3].block, "wide");
}

TEST(Extends, KeysHereOverrideKeysThere) {
  ir::Diagnostics diagnostics;
  const auto d = load_description(folder("good") + "/extends_base.toml", {}, diagnostics);
  ASSERT_TRUE(d) << diagnostics.text();
  EXPECT_EQ(d->model.name, "extends_base");
  EXPECT_EQ(d->layers.size(), 2u);               // this file
  EXPECT_EQ(d->defaults.attention.heads, 8);     // the one it extends
  EXPECT_EQ(d->defaults.norm.eps, 1e-6);         // and the one that extends
  EXPECT_FALSE(d->defaults.attention.qkv_bias);  // bias = false here counts for all four projections
  ASSERT_EQ(d->files.size(), 3u);
  EXPECT_TRUE(d->files[0].ends_with("good/extends_base.toml"));
  EXPECT_TRUE(d->files[2].ends_with("good/root.base.toml"));
}

TEST(Layers, LaterTablesNarrowEarlierOnes) {
  const Description d =
      load_text(decoder("",
                        "[layers.0-2]\nffn = { d_ff = 10 }\n[layers.1]\nffn = { d_ff = 20 }\n"
                        "[layers.-3--2]\nattention = { kv_heads = 2 }\n"));
  EXPECT_EQ(d.layers[0].settings.ffn.d_ff, 10);
  EXPECT_EQ(d.layers[1].settings.ffn.d_ff, 20);
  EXPECT_EQ(d.layers[2].settings.ffn.d_ff, 10);
  EXPECT_EQ(d.layers[3].settings.ffn.d_ff, 256);
  EXPECT_EQ(d.layers[0].settings.attention.kv_heads, 4);
  EXPECT_EQ(d.layers[1].settings.attention.kv_heads, 2);
  EXPECT_EQ(d.layers[2].settings.attention.kv_heads, 2);
}

TEST(Resolved, SaysEveryDefault) {
  const std::string text = resolved_toml(load_text(decoder()));
  for (const char* line :
       {"kv_heads = 4\n", "head_dim = 16\n", "d_ff = 256\n", "tie = true\n", "type = \"learned\"\n",
        "placement = \"pre\"\n", "final = true\n", "scale = 0.25\n", "activation = \"gelu\"\n",
        "ignore_index = -100\n", "init_std = 0.02\n", "mask = true\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Resolved, KeepsThePatternShort) {
  const Description d =
      load_text(decoder("pattern = [\"a\", \"b\"]\n", "[block.a]\n[block.b]\nffn = { d_ff = 9 }\n"));
  EXPECT_NE(resolved_toml(d).find("pattern = [\"ordinary\", \"b\"]\n"), std::string::npos)
      << resolved_toml(d);
}

TEST(Debug, PatternsFromTheFileAndTheCommandLine) {
  constexpr auto tap = Override::Kind::Tap;
  const auto patterns_of = [](const std::string& debug, const std::vector<Override>& overrides) {
    ir::Diagnostics diagnostics;
    const auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"tapped.toml", decoder("", debug)});
    const auto description = load_description(file, overrides, diagnostics);
    EXPECT_TRUE(description.has_value()) << diagnostics.text();
    std::string text;
    for (const NamePattern& tap : description->debug.taps) text += tap.text + ' ';
    for (const NamePattern& edit : description->debug.edits) text += '!' + edit.text + ' ';
    const std::string resolved = resolved_toml(*description);
    EXPECT_EQ(resolved.find("[debug]") != std::string::npos, !text.empty()) << resolved;
    return text;
  };
  EXPECT_EQ(patterns_of("", {}), "");
  EXPECT_EQ(patterns_of("[debug]\ntaps = \"a\"\n", {}), "a ");
  EXPECT_EQ(patterns_of("", {{tap, "x*"}, {tap, "say \"y\""}}), "x* say \"y\" ");
  EXPECT_EQ(patterns_of("[debug]\ntaps = \"a\"\n", {{tap, "b"}}), "a b ");
  EXPECT_EQ(patterns_of("[debug]\ntaps = [\"a\", \"b\"]\n", {{tap, "c"}, {Override::Kind::Set, "debug.taps=[]"}}), "");
  EXPECT_EQ(patterns_of("[debug]\ntaps = \"a\"\nedits = [\"b\"]\n", {{Override::Kind::Edit, "c"}, {tap, "d"}}), "a d !b !c ");
}

TEST(Resolved, LayersThatDifferGetBlocks) {
  const Description d = load_text(decoder("", "[layers.3]\nffn = { d_ff = 9 }\n"));
  const std::string pattern = "pattern = [\"ordinary\", \"ordinary\", \"ordinary\", \"layer_3\"]\n";
  EXPECT_NE(resolved_toml(d).find(pattern), std::string::npos) << resolved_toml(d);
}

TEST(Run, DefaultsDependOnTheModel) {
  const RunSettings run = load_text(decoder("", "")).run;
  EXPECT_FALSE(run.written);
  const Description d = load_text(
      "[model]\nkind='decoder'\nd_model=8\nlayers=1\nheads=2\nvocab=256\nmax_seq=32\n"
      "[run]\ndata='a.txt'\nbetas=[0, 0.5]\n");
  EXPECT_TRUE(d.run.written);
  EXPECT_EQ(d.run.task, "text");
  EXPECT_EQ(d.run.seq, 32);
  EXPECT_EQ(d.run.beta1, 0.0);
  EXPECT_EQ(d.run.beta2, 0.5);
}

TEST(Names, AllowedOnesAreAllowed) {
  for (const char* name : {"gpt2", "_x", "Reverse", "text", "a_b_c", "while_loop", "String"})
    EXPECT_EQ(refusal_of_name(name), "") << name;
  for (const char* name :
       {"class", "nullptr", "stdio", "vector", "json", "numpy", "lambda", "m", "gcc", "", "9a", "a-b"}) {
    EXPECT_NE(refusal_of_name(name), "") << name;
    EXPECT_EQ(refusal_of_name(allowed_name(name)), "") << name << " -> " << allowed_name(name);
  }
}

TEST(Names, StemOfTheFile) {
  EXPECT_EQ(load_text(decoder()).model.name, "model");
  ir::Diagnostics diagnostics;
  const auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"<stdin>", decoder()});
  EXPECT_EQ(load_description(file, {}, diagnostics)->model.name, "model");
}

TEST(Files, ThatCannotBeRead) {
  std::string error;
  EXPECT_FALSE(read_source("/no/such/file.toml", error));
  EXPECT_EQ(error, "cannot read '/no/such/file.toml': No such file or directory");
  EXPECT_FALSE(read_source("/tmp", error));
  EXPECT_EQ(error, "cannot read '/tmp': it is a folder");
  EXPECT_FALSE(read_source("/dev/zero", error));
  EXPECT_EQ(error, "cannot read '/dev/zero': it is larger than 4 MiB");
}

TEST(Files, DumpsMayBeLarge) {
  const std::string stem = ::testing::TempDir() + "large." + std::to_string(getpid());
  const std::string text((size_t{5} << 20) + 7, '#');
  std::string error;
  for (const char* ending : {".toml", ".tcir"}) {
    write_file(stem + ending, text);
    const auto file = read_source(stem + ending, error);
    std::remove((stem + ending).c_str());
    ASSERT_EQ(file != nullptr, ending == std::string(".tcir"));
    if (file) {
      EXPECT_TRUE(file->text == text);
    }
  }
  EXPECT_NE(error.find("it is larger than 4 MiB"), std::string::npos) << error;
}

// -- texts that nobody would write: an answer, never a crash
// ----------------------------------------------------------

TEST(Texts, WindowsNewlinesAndByteOrderMark) {
  std::string text = "\xEF\xBB\xBF" + decoder("", "[layers.1]\nffn = { d_ff = 32 }\n");
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2))
    text.insert(at, "\r");
  EXPECT_EQ(load_text(text).layers[1].settings.ffn.d_ff, 32);
}

TEST(Texts, LastLineWithoutNewline) {
  EXPECT_EQ(load_text(decoder() + "[norm]\neps = 1e-3").defaults.norm.eps, 1e-3);
}

TEST(Texts, StringsOfEveryForm) {
  EXPECT_EQ(load_text(decoder("name = 'a_b'")).model.name, "a_b");
  EXPECT_EQ(load_text(decoder("name = \"\"\"\na\\u005f\\\n   b\"\"\"")).model.name, "a_b");
  EXPECT_EQ(load_text(decoder("name = '''a_b'''")).model.name, "a_b");
  EXPECT_EQ(load_text(decoder("\"name\" = \"a\\U0000005Fb\" # a comment")).model.name, "a_b");
}

TEST(Texts, NestedDeeply) {
  const std::string deep(100000, '[');
  EXPECT_NE(errors_of(decoder("pattern = " + deep)).find("nested more than 32 deep"), std::string::npos);
  std::string dotted = "a";
  for (int i = 0; i < 50000; ++i) dotted += ".a";
  EXPECT_NE(errors_of(dotted + " = 1\n").find("more than 16 parts"), std::string::npos);
  EXPECT_NE(errors_of("[" + dotted + "]\n").find("more than 16 parts"), std::string::npos);
}

TEST(Texts, VeryLong) {
  std::string keys = "[model]\n";
  for (int i = 0; i < 20000; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  EXPECT_NE(errors_of(keys).find("more than 10000 keys is too large"), std::string::npos);
  EXPECT_NE(errors_of(decoder("name = \"" + std::string(1000000, 'a') + "\"")).find("longer than 64"),
            std::string::npos);
}

/// Any answer will do.
void load_somehow(const std::string& text) {
  ir::Diagnostics diagnostics;
  const auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"model.toml", text});
  const auto description = load_description(file, {}, diagnostics);
  EXPECT_NE(description.has_value(), diagnostics.text().find("error:") != std::string::npos) << text;
}

TEST(Texts, CutAnywhere) {
  const std::string text = read_file(folder("good") + "/block_parallel.toml");
  for (size_t length = 0; length < text.size(); ++length) load_somehow(text.substr(0, length));
}

TEST(Texts, WithBytesChanged) {
  std::mt19937 random(1);
  const std::string bytes = "[]{}=.,\"'#\n\\ \t\r0a-_\x80";
  for (const char* name :
       {"block_parallel", "decoder_all_keys", "pattern", "dotted_keys", "encoder_decoder_blocks"}) {
    const std::string text = read_file(folder("good") + "/" + name + ".toml");
    for (int round = 0; round < 300; ++round) {
      std::string changed = text;
      for (int i = 0; i <= round % 4; ++i)
        changed[random() % changed.size()] = bytes[random() % bytes.size()];
      load_somehow(changed);
    }
  }
}

}  // namespace
}  // namespace tfc::frontend::testing
