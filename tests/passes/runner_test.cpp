// The table of passes and its options: names, phases, stopping, dumping, printing, verifying.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Diagnostics;
using ir::Module;
using ir::Phase;

std::string refused(const PassOptions& options) {
  Module module = blocks({});
  Diagnostics diagnostics;
  EXPECT_FALSE(run_pipeline(module, Phase::Planned, options, diagnostics));
  EXPECT_EQ(module.phase, Phase::Blocks) << "something ran";
  return diagnostics.text();
}

TEST(Runner, PhasesFollowEachOther) {
  Phase phase = Phase::Blocks;
  for (const Pass& pass : all_passes()) {
    EXPECT_EQ(pass.before, phase) << pass.name;
    EXPECT_GE(pass.after, pass.before) << pass.name;
    EXPECT_FALSE(pass.summary.empty());
    phase = pass.after;
  }
  EXPECT_EQ(phase, Phase::Planned);
}

TEST(Runner, UnknownNamesSuggestTheNearest) {
  EXPECT_NE(refused({.disabled = {"fold-constant"}}).find("--disable: no pass is named 'fold-constant'"),
            std::string::npos);
  EXPECT_NE(refused({.disabled = {"fold-constant"}}).find("did you mean 'fold-constants'?"),
            std::string::npos);
  EXPECT_NE(refused({.stop_after = "exand"}).find("did you mean 'expand'?"), std::string::npos);
  EXPECT_NE(refused({.print_after = {"plam"}}).find("did you mean 'plan'?"), std::string::npos);
  EXPECT_NE(
      refused({.print_before = {"xyzzy-nothing"}}).find("--print-before: no pass is named 'xyzzy-nothing'"),
      std::string::npos);
  EXPECT_NE(refused({.print_filter = "("}).find("--print-filter: '(' is no regular expression"),
            std::string::npos);
}

TEST(Runner, MandatoryPassesCannotBeDisabled) {
  EXPECT_NE(refused({.disabled = {"expand"}}).find("'expand' cannot be disabled"), std::string::npos);
  EXPECT_NE(refused({.disabled = {"plan-memory"}}).find("'plan-memory' cannot be disabled"),
            std::string::npos);
}

TEST(Runner, APassMayBeMandatoryInOneOfItsPlaces) {
  Module module = blocks({});
  Diagnostics diagnostics;
  std::vector<PassRecord> records;
  ASSERT_TRUE(run_pipeline(module, Phase::Joint, {.disabled = {"merge-equal-nodes"}}, diagnostics, &records));
  std::vector<bool> ran;
  for (const PassRecord& record : records)
    if (record.name == "merge-equal-nodes") ran.push_back(record.ran);
  EXPECT_EQ(ran, (std::vector<bool>{true, false}));
}

TEST(Runner, StopsAfterAPassAndAtAPhase) {
  EXPECT_EQ(compiled({}, Phase::Planned, {.stop_after = "expand"}).phase, Phase::Ops);
  for (Phase phase : {Phase::Blocks, Phase::Ops, Phase::Joint, Phase::Fused, Phase::Planned}) {
    EXPECT_EQ(compiled({}, phase).phase, phase);
  }
}

TEST(Runner, RecordsWhatHappened) {
  Module module = blocks({});
  Diagnostics diagnostics;
  std::vector<PassRecord> records;
  ASSERT_TRUE(run_pipeline(module, Phase::Planned, {.optimisation = 0}, diagnostics, &records));
  ASSERT_EQ(records.size(), all_passes().size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].name, all_passes()[i].name);
    EXPECT_EQ(records[i].ran, all_passes()[i].mandatory) << records[i].name;
  }
  EXPECT_TRUE(records[0].changed);
  EXPECT_EQ(records[0].remarks, 2);  // one for each layer
  EXPECT_GT(records[0].nodes_after, records[0].nodes_before);
}

TEST(Runner, DumpsWhatChanged) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tfc-passes-dump";
  std::filesystem::remove_all(folder);
  compiled({}, Phase::Joint, {.dump_dir = folder.string()});
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    names.insert(file.path().filename().string());
  EXPECT_TRUE(names.contains("01-place-norms.tcir"));
  EXPECT_TRUE(names.contains("02-expand.tcir"));
  EXPECT_FALSE(names.contains("04-fuse-gate-up.tcir"));  // changed nothing
  std::filesystem::remove_all(folder);
}

TEST(Runner, AnUnwritableDumpIsAnError) {
  Module module = blocks({});
  Diagnostics diagnostics;
  EXPECT_FALSE(run_pipeline(module, Phase::Joint, {.dump_dir = "/proc/nothing/here"}, diagnostics));
  EXPECT_NE(diagnostics.text().find("cannot write '/proc/nothing/here/01-place-norms.tcir'"),
            std::string::npos)
      << diagnostics.text();
}

TEST(Runner, PrintsWhatIsAskedFor) {
  ::testing::internal::CaptureStderr();
  compiled({}, Phase::Joint, {.print_before = {"fuse-qkv"}, .print_after = {"fuse-gate-up", "fuse-qkv"}});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("; before fuse-qkv\n"), std::string::npos);
  EXPECT_NE(text.find("; after fuse-qkv\n"), std::string::npos);
  EXPECT_NE(text.find("; after fuse-gate-up (unchanged)\n"), std::string::npos);

  ::testing::internal::CaptureStderr();
  compiled({}, Phase::Joint, {.print_after = {"derive-entries"}, .print_filter = "^st"});
  const std::string filtered = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(filtered.find("entry step"), std::string::npos);
  EXPECT_EQ(filtered.find("entry infer"), std::string::npos);
}

TEST(Runner, FunctionsChooseEntries) {
  const auto names = [](const std::string& functions) {
    std::string text;
    for (const ir::Entry& entry : compiled({}, Phase::Joint, {.functions = functions}).entries)
      text += entry.name + " ";
    return text;
  };
  EXPECT_EQ(names("all"), "infer last loss logprobs train vjp step decode ");
  EXPECT_EQ(names("infer"), "infer last loss logprobs decode ");
  EXPECT_EQ(names("train"), "infer loss train vjp step ");
}

}  // namespace
}  // namespace tfc::passes::testing
