// The presets: the parameter counts that their papers and checkpoints have, and what can be changed about
// them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "tools/run_program.h"

namespace tfc::test {
namespace {

struct Preset {
  const char* name;
  std::vector<const char*> counts;  // lines of the report, without blanks
};

const std::vector<Preset> kPresets = {
    {"albert-base", {"total11,092,992"}},
    {"bert-base", {"total108,891,648"}},
    {"bert-large", {"total334,092,288"}},
    {"gpt2", {"total124,439,808"}},
    {"gpt2-large", {"total774,030,080"}},
    {"gpt2-medium", {"total354,823,168"}},
    {"gpt2-xl", {"total1,557,611,200"}},
    {"llama-7b", {"total6,738,415,616"}},
    {"mistral-7b", {"total7,241,732,096"}},
    {"mixtral-8x7b", {"total46,702,792,704"}},
    {"roberta-base", {"total124,055,040"}},
    {"sentence-encoder", {"total22,565,376"}},
    {"teaching-gpt", {"total4,870,144"}},
    // 44,138,496 in the layers.
    {"transformer-base", {"encoder.layers.0-518,914,304", "decoder.layers.0-525,224,192"}},
    {"vit-base-16", {"total86,567,656"}},
};

std::string without_blanks(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ') result += c;
  }
  return result;
}

Result report_of(const std::string& text) {
  const Folder folder;
  folder.write("mine.toml", text);
  return folder.run({"mine.toml", "--emit=report", "-o", "-"});
}

TEST(Presets, HaveTheirPublishedCounts) {
  for (const Preset& preset : kPresets) {
    const auto start = std::chrono::steady_clock::now();
    const Result result = report_of("extends = \"" + std::string(preset.name) + "\"\n");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    ASSERT_EQ(result.status, 0) << preset.name << "\n" << result.err;
    for (const char* count : preset.counts) {
      EXPECT_NE(without_blanks(result.out).find("\n" + std::string(count)), std::string::npos)
          << preset.name << "\n"
          << result.out;
    }
    EXPECT_LT(took.count(), 20) << preset.name;
  }
  // Planned, not allocated: the largest program of all took this much.
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss, 500 * 1024) << "KiB";
}

TEST(Presets, AreAllListedWhereOneIsUnknown) {
  std::string names;
  for (const Preset& preset : kPresets) names += (names.empty() ? "" : ", ") + std::string(preset.name);
  const Result result = report_of("extends = \"gtp2\"\n");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("error: unknown preset 'gtp2', did you mean 'gpt2'?"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("note: the presets are " + names + "\n"), std::string::npos) << result.err;
}

TEST(Presets, AreOverriddenAndNamedAsTheFile) {
  const Result result =
      report_of("extends = \"gpt2\"\n[model]\nlayers = 1\nd_model = 12\nheads = 2\nvocab = 100\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("mine"), std::string::npos) << result.out;
}

TEST(Presets, AreNoFilesToDependOn) {
  const Folder folder;
  folder.write("mine.toml", "extends = \"bert-large\"\n[model]\nlayers = 1\nd_model = 16\nheads = 2\n");
  const Result result = folder.run({"mine.toml", "--emit=toml", "-o", "out.toml", "--depfile=mine.d"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(folder.read("mine.d").find("preset"), std::string::npos) << folder.read("mine.d");
  EXPECT_NE(folder.read("out.toml").find("eps = 1e-12"), std::string::npos);
}

TEST(Presets, AreNamedInWhatIsSaidAboutThem) {
  const Result result = report_of("extends = \"gpt2\"\n[model]\nheads = 7\n");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("mine.toml:3:"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tfc::test
