// What is wrong with a command line is said in one line, compared whole.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tools/run_program.h"

namespace tfc::test {
namespace {

struct Case {
  std::vector<std::string> arguments;
  std::string message;
};

const Case kCases[] = {
    {{}, "no input: transformerc MODEL.toml (transformerc help says more)"},
    {{"train"}, "no input: transformerc train MODEL.toml (transformerc help says more)"},
    {{"mini.toml", "n.toml"}, "one file at a time: got 'mini.toml' and 'n.toml'"},
    {{"model.yaml"}, "'model.yaml' is neither a description (.toml) nor an IR dump (.tcir)"},
    {{"verfy", "mini.toml"},
     "'verfy' is neither a description (.toml) nor an IR dump (.tcir); did you mean verify?"},
    {{"mini.toml", "--emti=ir"}, "unknown flag --emti; did you mean --emit?"},
    {{"mini.toml", "--precison", "f64"}, "unknown flag --precison; did you mean --precision?"},
    {{"mini.toml", "--zzzzzz"}, "unknown flag --zzzzzz"},
    {{"mini.toml", "-x"}, "unknown flag -x"},
    {{"mini.toml", "--emit"}, "--emit needs a value: --emit KIND[,KIND...]"},
    {{"mini.toml", "--emit="}, "--emit needs a value: --emit=KIND[,KIND...]"},
    {{"mini.toml", "-o"}, "-o needs a value: -o PATH"},
    {{"mini.toml", "--emit=headr"},
     "--emit: unknown kind 'headr'; there are lib, so, obj, kernels, header, python, toml, ir, dot, llvm, asm, "
     "llvm-opt, report; "
     "did you mean header?"},
    {{"mini.toml", "--emit=ir:plan"},
     "--emit=ir:plan: unknown phase 'plan'; there are blocks, ops, joint, fused, planned"},
    {{"mini.toml", "--emit=so:joint"}, "--emit=so:joint: only ir and dot take a phase"},
    {{"mini.toml", "--emit=html"}, "not supported yet: --emit=html"},
    {{"mini.toml", "--set", "layers"}, "--set takes KEY=VALUE, such as --set model.layers=2; got 'layers'"},
    {{"mini.toml", "--set", "=2"}, "--set takes KEY=VALUE, such as --set model.layers=2; got '=2'"},
    {{"mini.toml", "--precision=f16"}, "--precision is one of f32, f64; got 'f16'"},
    {{"mini.toml", "--target=aarch64-linux-gnu"}, "not supported yet: --target"},
    {{"mini.toml", "--tap="}, "--tap needs a value: --tap=GLOB"},
    {{"mini.toml", "-g"}, "not supported yet: -g"},
    {{"mini.toml", "--cpu=multi"}, "not supported yet: --cpu=multi"},
    {{"mini.toml", "--functions=none"}, "--functions is one of infer, train, all; got 'none'"},
    {{"mini.toml", "-O4"}, "-O takes a level from 0 to 3; got '-O4'"},
    {{"mini.toml", "-O"}, "-O takes a level from 0 to 3; got '-O'"},
    {{"mini.toml", "-Ofast"}, "-O takes a level from 0 to 3; got '-Ofast'"},
    {{"mini.toml", "--at", "B=0"}, "--at takes sizes such as B=4,T=256 or B=4,T=256,S=64; got 'B=0'"},
    {{"mini.toml", "--at", "B=4,L=3"}, "--at takes sizes such as B=4,T=256 or B=4,T=256,S=64; got 'L=3'"},
    {{"mini.toml", "--at", "B=4x"}, "--at takes sizes such as B=4,T=256 or B=4,T=256,S=64; got 'B=4x'"},
    {{"mini.toml", "--at", "B=4,"}, "--at takes sizes such as B=4,T=256 or B=4,T=256,S=64; got ''"},
    {{"mini.toml", "--disable=fold"}, "--disable: unknown pass 'fold' (transformerc help passes lists them)"},
    {{"mini.toml", "--disable=fold-constant"},
     "--disable: unknown pass 'fold-constant'; did you mean fold-constants? (transformerc help passes lists "
     "them)"},
    {{"mini.toml", "--disable=expand"}, "--disable: the pass 'expand' is mandatory"},
    {{"mini.toml", "--stop-after=expnd"},
     "--stop-after: unknown pass 'expnd'; did you mean expand? (transformerc help passes lists them)"},
    {{"mini.toml", "--print-after=everything"},
     "--print-after: unknown pass 'everything' (transformerc help passes lists them)"},
    {{"mini.toml", "--print-filter=("},
     "--print-filter: '(' is no regular expression: parentheses not balanced"},
    {{"mini.toml", "--time-passes=yes"}, "--time-passes takes no value; got 'yes'"},
    {{"mini.toml", "--diagnostics=xml"}, "--diagnostics is one of text, json; got 'xml'"},
    {{"mini.toml", "-W"},
     "-W takes error, or the name of a warning, with no- before it to switch it off: unused-block, "
     "unused-key; got '-W'"},
    {{"mini.toml", "-Wno-unused-keys"},
     "-W takes error, or the name of a warning, with no- before it to switch it off: unused-block, "
     "unused-key; got "
     "'-Wno-unused-keys'; did you mean unused-key?"},
    {{"mini.toml", "--stop-after=expand", "--emit=ir"},
     "--stop-after prints the graph as it stands; it goes without --emit"},
    {{"mini.toml", "--check", "--emit=ir"}, "--check writes nothing; it goes without --emit"},
    {{"mini.toml", "-o", "-"},
     "-o - prints one text kind: header, python, toml, ir, dot, llvm, llvm-opt, asm or report"},
    {{"mini.toml", "--emit=so", "-o", "-"},
     "-o - prints one text kind: header, python, toml, ir, dot, llvm, llvm-opt, asm or report"},
    {{"mini.toml", "--emit=ir,dot", "-o", "-"},
     "-o - prints one text kind: header, python, toml, ir, dot, llvm, llvm-opt, asm or report"},
    {{"mini.toml", "--json"}, "only a verb takes --json (transformerc help)"},
    {{"bench", "mini.toml", "--emit=ir"}, "bench does not take --emit (transformerc help bench)"},
    {{"bench", "mini.toml", "--threads=-1"}, "--threads takes a number from 0 to 1024; got '-1'"},
    {{"bench", "mini.toml", "--seconds=0"}, "--seconds takes a number above 0, at most 600; got '0'"},
    {{"verify", "m.tcir"}, "verify reads a description (.toml), not an IR dump"},
    {{"m.tcir", "--set", "model.layers=2"}, "--set, --tap and --edit override keys of a description; an IR dump has none"},
    {{"m.tcir", "--precision=f64"}, "--precision is a description's choice; an IR dump has made it"},
    {{"generate", "mini.toml"}, "not supported yet: generate"},
    {{"eval", "mini.toml"}, "not supported yet: eval"},
    {{"import", "mini.toml"}, "not supported yet: import"},
    {{"export", "mini.toml"}, "not supported yet: export"},
    {{"new"}, "not supported yet: new"},
    {{"opt", "m.tcir"}, "not supported yet: opt"},
    {{"run", "mini.toml"}, "not supported yet: run"},
    {{"explain", "E1"}, "not supported yet: explain"},
    {{"schema"}, "not supported yet: schema"},
    {{"help", "benhc"}, "help: unknown verb 'benhc'; did you mean bench?"},
    {{"help", "train", "bench"}, "help takes one verb"},
    {{"mini.toml", "--cpu=core2"}, "CPU 'core2' is below x86-64-v2, the least that kernels are made for"},
    {{"mini.toml", "--cpu=pentium17"},
     "unknown CPU 'pentium17' for --cpu; use native, x86-64-v2, x86-64-v3, x86-64-v4 or one of LLVM's names "
     "such as "
     "skylake-avx512 or znver4"},
};

std::string joined(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += argument + " ";
  return text;
}

}  // namespace

TEST(CommandLine, MistakesAreSaidInOneLine) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  for (const Case& c : kCases) {
    const Result result = folder.run(c.arguments);
    EXPECT_EQ(result.status, 2) << joined(c.arguments);
    EXPECT_EQ(result.err, "transformerc: error: " + c.message + "\n") << joined(c.arguments);
    EXPECT_EQ(result.out, "") << joined(c.arguments);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"mini.toml"});
}

TEST(CommandLine, HelpAndVersionSucceed) {
  const Folder folder;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"help"},
                                                    {"--help"},
                                                    {"help", "train"},
                                                    {"bench", "--help"},
                                                    {"help", "passes"}}) {
    const Result result = folder.run(arguments);
    EXPECT_EQ(result.status, 0) << joined(arguments);
    EXPECT_EQ(result.err, "") << joined(arguments);
    EXPECT_GT(result.out.size(), 100u) << joined(arguments);
  }
  EXPECT_EQ(folder.run({"--version"}).out.substr(0, 13), "transformerc ");
}

// Every flag that the program knows is in some help text: the two cannot drift apart, they are one table.
TEST(CommandLine, HelpOfAVerbListsItsOwnFlags) {
  const Folder folder;
  const std::string bench = folder.run({"help", "bench"}).out, compile = folder.run({"help"}).out;
  EXPECT_NE(bench.find("--seconds=X"), std::string::npos);
  EXPECT_EQ(bench.find("--emit"), std::string::npos);
  EXPECT_NE(compile.find("--emit=KIND"), std::string::npos);
  EXPECT_EQ(compile.find("--seconds"), std::string::npos);
}

TEST(CommandLine, FilesThatCannotBeReadOrWrittenAre74) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  const Result missing = folder.run({"nowhere.toml"});
  EXPECT_EQ(missing.status, 74);
  EXPECT_EQ(missing.err, "transformerc: error: cannot read 'nowhere.toml': No such file or directory\n");
  const Result folder_taken = folder.run({"mini.toml", "--emit=header", "-o", "/dev/null/x.h"});
  EXPECT_EQ(folder_taken.status, 74);
  EXPECT_EQ(folder_taken.err, "transformerc: error: cannot write '/dev/null/x.h': Not a directory\n");
  const Result itself = folder.run({"mini.toml", "--emit=toml", "-o", "mini.toml"});
  EXPECT_EQ(itself.status, 74);
  EXPECT_EQ(itself.err,
            "transformerc: error: cannot write 'mini.toml': it is an input; choose another place with -o\n");
  EXPECT_EQ(folder.read("mini.toml"), kTinyDecoder);
}

TEST(CommandLine, ADumpFolderThatCannotBeMadeIs74) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  const Result result = folder.run({"mini.toml", "--check", "--dump-dir=mini.toml"});
  EXPECT_EQ(result.status, 74);
  EXPECT_EQ(result.err.rfind("transformerc: error: cannot write 'mini.toml/01-place-norms.tcir': ", 0), 0u)
      << result.err;
}

TEST(CommandLine, StandardOutputThatIsFullIs74) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  for (const char* what : {"help", "--version", "mini.toml --emit=toml -o -", "mini.toml --emit=header"}) {
    const std::string command =
        "cd '" + folder.path().string() + "' && '" TFC_PROGRAM "' " + what + " >/dev/full 2>said </dev/null";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 74) << what;
    EXPECT_EQ(folder.read("said"),
              "transformerc: error: cannot write to standard output: No space left on device\n")
        << what;
  }
}

TEST(CommandLine, ASizeThatDoesNotFitIsTheCommandLinesFault) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  for (const char* verb : {"verify", "bench", "norms"}) {
    const Result result = folder.run({verb, "mini.toml", "--at", "B=1,T=13"});
    EXPECT_EQ(result.status, 2) << verb;
    EXPECT_EQ(result.err, "transformerc: error: --at: T is 13, expected at most 12 (max_seq)\n") << verb;
  }
}

TEST(CommandLine, WarningsCanBeErrorsOrOff) {
  const Folder folder;
  folder.write("mini.toml", std::string(kTinyDecoder) + "[block.spare]\nattention = { kv_heads = 1 }\n");
  const Result warned = folder.run({"mini.toml", "--check"});
  EXPECT_EQ(warned.status, 0);
  EXPECT_NE(warned.err.find("mini.toml:8:8: warning: "), std::string::npos) << warned.err;
  EXPECT_EQ(folder.run({"mini.toml", "--check", "-Werror"}).status, 1);
  const Result off = folder.run({"mini.toml", "--check", "-Werror", "-Wno-unused-block"});
  EXPECT_EQ(off.status, 0);
  EXPECT_EQ(off.err, "");
}

/// What can be known only when the parameters are has its place all the same.
TEST(CommandLine, WhatTrainingCannotDoIsShownWhereItIsWritten) {
  const Folder folder;
  folder.write("mini.toml", std::string(kTinyDecoder) + "[train]\nfreeze = [\"embedding\", \"layers.7\"]\n");
  const Result frozen = folder.run({"mini.toml", "--check"});
  EXPECT_EQ(frozen.status, 1);
  EXPECT_EQ(frozen.err.rfind("mini.toml:9:24: error: freeze: no parameter is named by 'layers.7'\n"
                             "freeze = [\"embedding\", \"layers.7\"]\n"
                             "                       ^~~~~~~~~~\n",
                             0),
            0u)
      << frozen.err;
  folder.write("mini.toml", std::string(kTinyDecoder) + "[train]\nrecompute = \"auto\"\n" +
                                "budget = { bytes = \"10kB\", batch = 2, seq = 4 }\n");
  const Result budget = folder.run({"mini.toml", "--check"});
  EXPECT_EQ(budget.status, 1);
  EXPECT_EQ(budget.err.rfind("mini.toml:10:1: error: training needs ", 0), 0u) << budget.err;
}

TEST(CommandLine, DiagnosticsAsJson) {
  const Folder folder;
  folder.write("mini.toml", std::string(kTinyDecoder) + "n_head = 3\n");
  const Result result = folder.run({"mini.toml", "--diagnostics=json"});
  EXPECT_EQ(result.status, 1);
  for (const char* part :
       {"\"severity\": \"error\"", "\"file\": \"mini.toml\"", "\"line\": 8", "\"column\": 1"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " in " << result.err;
  }
}

TEST(CommandLine, TroubleWithFilesIsJsonToo) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"nowhere.toml"}, {"mini.toml", "--emit=header", "-o", "nowhere/x.h"}}) {
    std::vector<std::string> all = arguments;
    all.push_back("--diagnostics=json");
    const Result result = folder.run(all);
    EXPECT_EQ(result.status, 74);
    EXPECT_EQ(result.err.rfind("[\n", 0), 0u) << result.err;
    EXPECT_EQ(result.err.find('['), 0u) << result.err;
    EXPECT_NE(result.err.find("No such file or directory"), std::string::npos) << result.err;
  }
}

TEST(CommandLine, PassesPrintAndDump) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  const Result printed = folder.run(
      {"mini.toml", "--check", "--print-before=plan", "--print-after=differentiate", "--print-filter=^vjp$"});
  EXPECT_EQ(printed.status, 0);
  EXPECT_NE(printed.err.find("; after differentiate\n"), std::string::npos);
  EXPECT_NE(printed.err.find("; before plan\n"), std::string::npos);
  EXPECT_NE(printed.err.find("entry vjp"), std::string::npos);
  EXPECT_EQ(printed.err.find("entry train"), std::string::npos);
  const Result dumped =
      folder.run({"mini.toml", "--check", "--dump-dir=dumps", "--time-passes", "--verify-each", "--remarks"});
  EXPECT_EQ(dumped.status, 0);
  EXPECT_NE(dumped.err.find("all passes"), std::string::npos);
  EXPECT_NE(dumped.err.find("remark: "), std::string::npos);
  const std::vector<std::string> names = folder.names();
  EXPECT_GT(names.size(), 5u);
  EXPECT_EQ(names[0].rfind("dumps/01-place-norms", 0), 0u) << names[0];
}

TEST(CommandLine, FlagsTakeTheirValueEitherWay) {
  const Folder folder;
  folder.write("mini.toml", kTinyDecoder);
  const Result joined_value = folder.run({"mini.toml", "--emit=toml", "--set=model.layers=3", "-o", "-"});
  const Result next_value = folder.run({"mini.toml", "--emit", "toml", "--set", "model.layers=3", "-o", "-"});
  EXPECT_EQ(joined_value.status, 0);
  EXPECT_EQ(joined_value.out, next_value.out);
  EXPECT_NE(joined_value.out.find("layers"), std::string::npos);
}

}  // namespace tfc::test
