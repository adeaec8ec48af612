// One wrong or odd description a file, and beside it (.expect) everything that is said about it.
#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/load.h"
#include "frontend/testing.h"

namespace tfc::frontend::testing {
namespace {

/// The first lines of a description may hold overrides: "# set: model.layers=2".
std::vector<std::string> sets_of(const std::string& text) {
  const std::string mark = "# set: ";
  std::vector<std::string> sets;
  for (size_t at = 0; text.compare(at, mark.size(), mark) == 0; at = text.find('\n', at) + 1)
    sets.push_back(text.substr(at + mark.size(), text.find('\n', at) - at - mark.size()));
  return sets;
}

void compare_messages(const std::string& name, bool loads) {
  std::filesystem::current_path(folder(name));  // messages print paths as they were given
  for (const std::string& file : toml_files(".")) {
    SCOPED_TRACE(name + "/" + file);
    if (file.ends_with(".base.toml")) continue;  // extended by others
    ir::Diagnostics diagnostics;
    const auto description = load_description(file, overrides_of(sets_of(read_file(file))), diagnostics);
    EXPECT_EQ(description.has_value(), loads);
    const std::string expected_file = file.substr(0, file.size() - 5) + ".expect";
    if (updating()) write_file(expected_file, diagnostics.text());
    EXPECT_EQ(diagnostics.text(), read_file(expected_file));
    EXPECT_NE(diagnostics.text(), "");
  }
}

TEST(Messages, OfBadDescriptions) {
  EXPECT_GE(toml_files(folder("bad")).size(), 60u);
  compare_messages("bad", false);
}

TEST(Messages, OfDescriptionsWithWarnings) { compare_messages("warned", true); }

}  // namespace
}  // namespace tfc::frontend::testing
