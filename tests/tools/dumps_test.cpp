// IR dumps: every phase prints, reads back and prints the same; compiling goes on from some.
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace tfc::test {
namespace {

const char* const kModels[][2] = {
    {"decoder", kTinyDecoder},
    {"encoder",
     "[model]\nkind = \"encoder\"\nd_model = 12\nlayers = 1\nheads = 3\nvocab = 9\n"
     "[position]\ntype = \"sinusoidal\"\n[head]\ntype = \"classifier\"\nclasses = 3\n"},
    {"pair",
     "[model]\nkind = \"encoder-decoder\"\nd_model = 8\nencoder_layers = 1\ndecoder_layers = 1\nheads = 2\n"
     "vocab = 7\nmax_seq = 9\n[norm]\nplacement = \"post\"\n"},
    {"llama",
     "[model]\nkind = \"decoder\"\nd_model = 16\nlayers = 2\nheads = 4\nkv_heads = 2\nvocab = 13\n"
     "[position]\ntype = \"rope\"\n[norm]\ntype = \"rmsnorm\"\n[attention]\nbias = false\n"
     "[ffn]\nactivation = \"swiglu\"\nbias = false\n"},
    {"hidden",
     "[model]\nkind = \"encoder\"\nd_model = 10\nlayers = 1\nheads = 2\n[norm]\nplacement = \"sandwich\"\n"},
};

}  // namespace

TEST(Dumps, EveryPhaseReadsBackAndPrintsTheSame) {
  for (const auto& [name, text] : kModels) {
    const Folder folder;
    folder.write(std::string(name) + ".toml", text);
    for (const char* phase : {"blocks", "ops", "joint", "fused", "planned"}) {
      const std::string emit = std::string("--emit=ir:") + phase;
      const Result first = folder.run({std::string(name) + ".toml", emit, "-o", "dump.tcir"});
      ASSERT_EQ(first.status, 0) << name << " " << phase << first.err;
      const Result again = folder.run({"dump.tcir", emit, "-o", "-"});
      ASSERT_EQ(again.status, 0) << name << " " << phase << again.err;
      EXPECT_TRUE(again.out == folder.read("dump.tcir")) << name << " " << phase;
    }
  }
}

TEST(Dumps, CompilingGoesOnFromBlocksJointAndPlanned) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  ASSERT_EQ(folder.run({"tiny.toml", "--emit=so,header", "-o", "direct"}).status, 0);
  for (const char* phase : {"blocks", "joint", "planned"}) {
    ASSERT_EQ(folder.run({"tiny.toml", std::string("--emit=ir:") + phase, "-o", "dump.tcir"}).status, 0);
    const Result again = folder.run({"dump.tcir", "--emit=so,header", "-o", phase});
    ASSERT_EQ(again.status, 0) << phase << again.err;
    EXPECT_TRUE(folder.read(std::string(phase) + "/libtiny.so") == folder.read("direct/libtiny.so")) << phase;
    EXPECT_TRUE(folder.read(std::string(phase) + "/tiny.h") == folder.read("direct/tiny.h")) << phase;
  }
}

TEST(Dumps, OthersAreForReading) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  ASSERT_EQ(folder.run({"tiny.toml", "--emit=ir:ops", "-o", "dump.tcir"}).status, 0);
  const Result result = folder.run({"dump.tcir", "--emit=so"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err,
            "transformerc: error: an IR dump of phase ops can be checked and printed (--emit=ir:ops); "
            "compiling goes on "
            "from blocks, joint and planned\n");
  ASSERT_EQ(folder.run({"tiny.toml", "--emit=ir:joint", "-o", "dump.tcir"}).status, 0);
  const Result back = folder.run({"dump.tcir", "--emit=ir:blocks", "-o", "-"});
  EXPECT_EQ(back.status, 2);
  EXPECT_EQ(back.err, "transformerc: error: --emit: the dump is of phase joint, past blocks\n");
}

TEST(Dumps, ADamagedDumpIsTheInputsFault) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  ASSERT_EQ(folder.run({"tiny.toml", "--emit=ir:joint", "-o", "dump.tcir"}).status, 0);
  const std::string text = folder.read("dump.tcir");
  folder.write("dump.tcir", text.substr(0, text.size() / 2));
  const Result result = folder.run({"dump.tcir", "--emit=so"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("dump.tcir:"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("error: "), std::string::npos) << result.err;
}

TEST(Dumps, FlagsOfPassesThatHaveRunAreRefused) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  ASSERT_EQ(folder.run({"tiny.toml", "--emit=ir:joint", "-o", "dump.tcir"}).status, 0);
  for (const auto& [flag, pass] : {std::pair{"--stop-after=expand", "expand"},
                                   {"--print-after=place-norms", "place-norms"},
                                   {"--functions=infer", "derive-entries"}}) {
    const Result late = folder.run({"dump.tcir", flag});
    EXPECT_EQ(late.status, 2) << flag;
    EXPECT_EQ(late.err, "transformerc: error: " + std::string(flag).substr(0, std::string(flag).find('=')) +
                            ": the pass '" + pass +
                            "' ran before the dump was made, which is of phase joint\n");
  }
  EXPECT_EQ(folder.run({"dump.tcir", "--check", "--disable=fuse-epilogues,reuse-memory"}).status, 0);
}

}  // namespace tfc::test
