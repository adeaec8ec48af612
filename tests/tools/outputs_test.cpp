// Files that a run writes: which, where, all or none, and the same bytes every time.
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace tfc::test {

using Names = std::vector<std::string>;

TEST(Outputs, DefaultIsLibrariesHeaderAndModule) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result = folder.run({"tiny.toml"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "libtiny.a\nlibtiny.so\ntiny.h\ntiny.py\n");
  EXPECT_EQ(folder.names(), (Names{"libtiny.a", "libtiny.so", "tiny.h", "tiny.py", "tiny.toml"}));
}

TEST(Outputs, IntoAFolderThatIsMade) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result = folder.run({"tiny.toml", "--emit=header,python", "-o", "a/b"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "a/b/tiny.h\na/b/tiny.py\n");
  EXPECT_EQ(folder.names(), (Names{"a/b/tiny.h", "a/b/tiny.py", "tiny.toml"}));
}

TEST(Outputs, WithoutTapsTheLibraryIsTheSameToTheByte) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const std::string tapped = std::string(kTinyDecoder) + "[debug]\ntaps = [\"layers.*.attn.weights\", \"layers.0.*\"]\n";
  folder.write("tapped.toml", tapped);
  EXPECT_EQ(folder.run({"tiny.toml", "-o", "plain"}).status, 0);
  EXPECT_EQ(folder.run({"tapped.toml", "--set=model.name=tiny", "-o", "tapped"}).status, 0);
  EXPECT_EQ(folder.run({"tapped.toml", "--set=model.name=tiny", "--set", "debug.taps=[]", "-o", "removed"}).status, 0);
  EXPECT_EQ(folder.run({"tiny.toml", "--tap=layers.*.attn.weights", "--tap=layers.0.*", "-o", "flags"}).status, 0);
  for (const char* file : {"libtiny.so", "libtiny.a", "tiny.h", "tiny.py"}) {
    const std::string name = std::string("/") + file;
    EXPECT_TRUE(folder.read("plain" + name) == folder.read("removed" + name)) << file;
    EXPECT_TRUE(folder.read("plain" + name) != folder.read("tapped" + name)) << file;
    EXPECT_TRUE(folder.read("flags" + name) == folder.read("tapped" + name)) << file;
  }
}

TEST(Outputs, WithoutEditsTheLibraryIsTheSameToTheByte) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  folder.write("edited.toml", std::string(kTinyDecoder) + "[debug]\nedits = \"layers.0.*\"\n");
  EXPECT_EQ(folder.run({"tiny.toml", "-o", "plain"}).status, 0);
  EXPECT_EQ(folder.run({"edited.toml", "--set=model.name=tiny", "-o", "edited"}).status, 0);
  EXPECT_EQ(folder.run({"edited.toml", "--set=model.name=tiny", "--set", "debug.edits=[]", "-o", "removed"}).status, 0);
  EXPECT_EQ(folder.run({"tiny.toml", "--edit=layers.0.*", "-o", "flags"}).status, 0);
  for (const char* file : {"libtiny.so", "libtiny.a", "tiny.h", "tiny.py"}) {
    const std::string name = std::string("/") + file;
    EXPECT_TRUE(folder.read("plain" + name) == folder.read("removed" + name)) << file;
    EXPECT_TRUE(folder.read("plain" + name) != folder.read("edited" + name)) << file;
    EXPECT_TRUE(folder.read("flags" + name) == folder.read("edited" + name)) << file;
  }
}

TEST(Outputs, OneKindGoesToAFile) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  EXPECT_EQ(folder.run({"tiny.toml", "--emit=header", "-o", "other.h"}).out, "other.h\n");
  EXPECT_EQ(folder.names(), (Names{"other.h", "tiny.toml"}));
}

TEST(Outputs, EveryTextKindPrints) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  for (const char* kind : {"header", "python", "toml", "ir", "ir:blocks", "ir:ops", "ir:joint", "ir:planned",
                           "dot", "dot:blocks", "llvm", "llvm-opt", "asm", "report"}) {
    const Result result = folder.run({"tiny.toml", std::string("--emit=") + kind, "-o", "-"});
    EXPECT_EQ(result.status, 0) << kind << result.err;
    EXPECT_GT(result.out.size(), 200u) << kind;
  }
  EXPECT_EQ(folder.names(), (Names{"tiny.toml"}));
}

TEST(Outputs, NamesSayKindAndPhase) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result =
      folder.run({"tiny.toml", "--emit=obj,toml,ir:joint,ir,dot:blocks,llvm,llvm-opt,asm,report"});
  EXPECT_EQ(result.out,
            "tiny.o\ntiny.resolved.toml\ntiny.joint.tcir\ntiny.planned.tcir\ntiny.blocks.dot\ntiny.ll\ntiny."
            "opt.ll\n"
            "tiny.s\ntiny.report.txt\n");
}

TEST(Outputs, AnErrorLeavesNothingAndTouchesNothing) {
  const Folder folder;
  folder.write("tiny.toml", std::string(kTinyDecoder) + "layer = 3\n");
  folder.write("tiny.h", "older");
  const Result result = folder.run({"tiny.toml"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("tiny.toml:8:1: error: "), std::string::npos) << result.err;
  EXPECT_EQ(folder.names(), (Names{"tiny.h", "tiny.toml"}));
  EXPECT_EQ(folder.read("tiny.h"), "older");
}

TEST(Outputs, WhenOneFileCannotBeWrittenNoneIs) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  folder.write("tiny.h", "older");
  std::filesystem::create_directory(folder.path() / "tiny.py");  // in the way of the Python module
  const Result result = folder.run({"tiny.toml", "--emit=header,python"});
  EXPECT_EQ(result.status, 74);
  EXPECT_EQ(result.err, "transformerc: error: cannot write 'tiny.py': it is a folder\n");
  EXPECT_EQ(folder.names(), (Names{"tiny.h", "tiny.toml"}));
  EXPECT_EQ(folder.read("tiny.h"), "older");
}

TEST(Outputs, WhenTheLastStepFailsOlderFilesComeBack) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  folder.write("tiny.h", "older");
  folder.write("there.py", "elsewhere");
  std::filesystem::create_symlink("there.py", folder.path() / "tiny.py");
  std::filesystem::create_symlink("/dev/full", folder.path() / "full.d");  // fails when it is written, after the renames
  const Names before = folder.names();
  const Result result = folder.run({"tiny.toml", "--emit=header,python,toml", "--depfile=full.d"});
  EXPECT_EQ(result.status, 74);
  EXPECT_EQ(result.err, "transformerc: error: cannot write 'full.d': No space left on device\n");
  EXPECT_EQ(folder.names(), before) << "tiny.resolved.toml is not there, nor a temporary file";
  EXPECT_EQ(folder.read("tiny.h"), "older");
  EXPECT_EQ(folder.read("there.py"), "elsewhere");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "tiny.py"));
  std::filesystem::remove(folder.path() / "full.d");
  EXPECT_EQ(folder.run({"tiny.toml", "--emit=header,python", "--depfile=tiny.d"}).status, 0);
  EXPECT_EQ(folder.names(), (Names{"there.py", "tiny.d", "tiny.h", "tiny.py", "tiny.toml"}));
  EXPECT_NE(folder.read("tiny.h"), "older");
}

TEST(Outputs, CheckWritesNothing) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result = folder.run({"tiny.toml", "--check"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(folder.names(), (Names{"tiny.toml"}));
}

TEST(Outputs, TheSameBytesEveryTimeAndAnywhere) {
  const Folder one, two;
  for (const Folder* folder : {&one, &two}) {
    folder->write("tiny.toml", kTinyDecoder);
    ASSERT_EQ(folder->run({"tiny.toml", "--emit=lib,so,obj,header,python,toml,ir,llvm,asm,report"}).status,
              0);
  }
  ASSERT_EQ(one.names(), two.names());
  ASSERT_EQ(one.names().size(), 11u);
  for (const std::string& name : one.names()) {
    EXPECT_TRUE(one.read(name) == two.read(name)) << name;
    EXPECT_EQ(one.read(name).find(one.path().string()), std::string::npos) << name;
    EXPECT_EQ(one.read(name).find(TFC_SOURCE_DIR), std::string::npos) << name;
  }
}

TEST(Outputs, TheResolvedDescriptionCompilesToTheSameBytes) {
  const Folder direct, resolved;
  direct.write("tiny.toml", kTinyDecoder);
  ASSERT_EQ(direct.run({"tiny.toml", "--emit=so,header,toml"}).status, 0);
  resolved.write("other.toml", direct.read("tiny.resolved.toml"));
  const Result again = resolved.run({"other.toml", "--emit=so,header"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(direct.read("libtiny.so") == resolved.read("libtiny.so"));
  EXPECT_TRUE(direct.read("tiny.h") == resolved.read("tiny.h"));
}

TEST(Outputs, DepfileNamesWhatWasRead) {
  const Folder folder;
  folder.write("base.toml", kTinyDecoder);
  folder.write("tiny.toml", "extends = \"base.toml\"\n[model]\nname = \"tiny\"\nlayers = 1\n");
  ASSERT_EQ(folder.run({"tiny.toml", "--emit=header", "-o", "out.h", "--depfile=out.d"}).status, 0);
  EXPECT_EQ(folder.read("out.d"), "out.h: \\\n  tiny.toml \\\n  base.toml\n");
}

TEST(Outputs, WithoutItsDepfileNothingIsWritten) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result =
      folder.run({"tiny.toml", "--emit=header,python", "-o", "a/b", "--depfile=missing/out.d"});
  EXPECT_EQ(result.status, 74);
  EXPECT_EQ(result.err, "transformerc: error: cannot write 'missing/out.d': No such file or directory\n");
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(folder.names(), (Names{"tiny.toml"}));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a"));
}

TEST(Outputs, TwoOutputsInOnePlaceAreRefused) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result result = folder.run({"tiny.toml", "--emit=header", "-o", "tiny.d", "--depfile=./tiny.d"});
  EXPECT_EQ(result.status, 74);
  EXPECT_EQ(result.err, "transformerc: error: cannot write './tiny.d': two outputs would go there\n");
  EXPECT_EQ(folder.names(), (Names{"tiny.toml"}));
}

TEST(Outputs, AFileThatADescriptionExtendsIsAnInputToo) {
  const Folder folder;
  folder.write("base.toml", kTinyDecoder);
  folder.write("tiny.toml", "extends = \"base.toml\"\n[model]\nname = \"tiny\"\nlayers = 1\n");
  for (const char* flag : {"-o=base.toml", "--depfile=base.toml"}) {
    const Result result = folder.run({"tiny.toml", "--emit=toml", flag});
    EXPECT_EQ(result.status, 74);
    EXPECT_EQ(result.err,
              "transformerc: error: cannot write 'base.toml': it is an input; choose another place with -o\n");
    EXPECT_EQ(folder.read("base.toml"), kTinyDecoder);
    EXPECT_EQ(folder.names(), (Names{"base.toml", "tiny.toml"}));
  }
}

TEST(Outputs, ADeviceIsWrittenIntoAndNotReplaced) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const auto sink = folder.path() / "sink";
  std::filesystem::create_symlink("/dev/null", sink);
  EXPECT_EQ(folder.run({"tiny.toml", "--emit=header", "-o", "sink", "--depfile=tiny.d"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(sink));
  EXPECT_EQ(folder.read("tiny.d"), "sink: \\\n  tiny.toml\n");
  std::filesystem::remove(sink);
  std::filesystem::create_symlink("/dev/full", sink);
  const Result full = folder.run({"tiny.toml", "--emit=header", "-o", "sink"});
  EXPECT_EQ(full.status, 74);
  EXPECT_EQ(full.err, "transformerc: error: cannot write 'sink': No space left on device\n");
}

TEST(Outputs, AnOpenFileIsWrittenIntoAndItsNameStays) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const auto name = folder.path() / "standard_output";  // as /dev/stdout is
  std::filesystem::create_symlink("/proc/self/fd/1", name);
  const Result result = folder.run({"tiny.toml", "--emit=header", "-o", "standard_output"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_symlink(name));
  EXPECT_EQ(result.out, folder.run({"tiny.toml", "--emit=header", "-o", "-"}).out);
  EXPECT_EQ(result.out, folder.run({"tiny.toml", "--emit=header", "-o", "/dev/fd/1"}).out);
}

TEST(Outputs, StopAfterPrintsTheGraphAsItStands) {
  const Folder folder;
  folder.write("tiny.toml", kTinyDecoder);
  const Result expanded = folder.run({"tiny.toml", "--stop-after=expand", "-o", "-"});
  EXPECT_EQ(expanded.status, 0) << expanded.err;
  EXPECT_NE(expanded.out.find("layer_norm"), std::string::npos);
  EXPECT_EQ(expanded.out.find("layer_norm_grad"), std::string::npos);
}

}  // namespace tfc::test
