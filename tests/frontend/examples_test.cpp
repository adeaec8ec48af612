// Every example and every description of tests/frontend/good loads, builds, and is said the same way by its
// resolved TOML.
#include <gtest/gtest.h>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "frontend/resolved_toml.h"
#include "frontend/testing.h"

namespace tfc::frontend::testing {
namespace {

void check(const std::string& path) {
  SCOPED_TRACE(path);
  ir::Diagnostics diagnostics;
  const auto description = load_description(path, {}, diagnostics);
  ASSERT_TRUE(description) << diagnostics.text();
  EXPECT_EQ(diagnostics.text(), "");
  const std::string resolved = resolved_toml(*description);
  const auto again = load_description(
      std::make_shared<ir::SourceFile>(ir::SourceFile{"again.toml", resolved}), {}, diagnostics);
  ASSERT_TRUE(again) << diagnostics.text() << resolved;
  EXPECT_EQ(diagnostics.text(), "") << resolved;
  EXPECT_EQ(resolved_toml(*again), resolved);
  const ir::Module module = blocks_of(*description);
  EXPECT_EQ(module.description, resolved);
  EXPECT_EQ(text_without_places(blocks_of(*again)), text_without_places(module));
}

void check_folder(const std::string& path, size_t least) {
  const std::vector<std::string> files = toml_files(path);
  EXPECT_GE(files.size(), least);
  for (const std::string& file : files)
    if (!file.ends_with(".base.toml")) check(path + "/" + file);
}

TEST(Examples, LoadAndResolve) { check_folder(std::string(TFC_SOURCE_DIR) + "/examples", 7); }

TEST(GoodDescriptions, LoadAndResolve) { check_folder(folder("good"), 25); }

TEST(Fixtures, LoadAndResolve) { check_folder(std::string(TFC_SOURCE_DIR) + "/tests/fixtures", 20); }

}  // namespace
}  // namespace tfc::frontend::testing
