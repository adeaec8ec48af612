#include "ir/diagnostic.h"

#include <gtest/gtest.h>

namespace tfc::ir {
namespace {

std::shared_ptr<const SourceFile> file(std::string text) {
  return std::make_shared<SourceFile>(SourceFile{"model.toml", std::move(text)});
}

TEST(Diagnostics, ErrorWithCaretAndNote) {
  Diagnostics diagnostics;
  diagnostics.error({file("[model]\nd_modle = 8\n"), 2, 1, 7}, "unknown key 'd_modle'")
      .notes.push_back("did you mean 'd_model'?");
  EXPECT_EQ(diagnostics.text(),
            "model.toml:2:1: error: unknown key 'd_modle'\n"
            "d_modle = 8\n"
            "^~~~~~~\n"
            "note: did you mean 'd_model'?\n");
}

TEST(Diagnostics, SortedByLineAndSaidOnce) {
  Diagnostics diagnostics;
  const auto source = file("a\nb\n");
  diagnostics.error({source, 2, 1, 1}, "second");
  diagnostics.error({source, 1, 1, 1}, "first");
  diagnostics.error({source, 2, 1, 1}, "second");
  EXPECT_EQ(diagnostics.text(), "model.toml:1:1: error: first\na\n^\nmodel.toml:2:1: error: second\nb\n^\n");
}

TEST(Diagnostics, CaretUnderWideCharactersAndTabs) {
  Diagnostics diagnostics;
  diagnostics.error({file("\tk = \"\xc3\xa4\xc3\xb6\" x"), 1, 13, 1}, "stray");
  EXPECT_EQ(diagnostics.text(),
            "model.toml:1:13: error: stray\n\tk = \"\xc3\xa4\xc3\xb6\" x\n\t         ^\n");
}

TEST(Diagnostics, WarningsAndRemarks) {
  Diagnostics diagnostics;
  diagnostics.warning("odd", {}, "an odd size");
  diagnostics.remark("place-norms", {}, "pre: 12 layers");
  EXPECT_TRUE(diagnostics.ok());
  EXPECT_EQ(diagnostics.text(), "transformerc: warning: an odd size [-Wodd]\n");
  diagnostics.remarks_wanted = true;
  EXPECT_EQ(
      diagnostics.text(),
      "transformerc: warning: an odd size [-Wodd]\ntransformerc: remark: pre: 12 layers [place-norms]\n");
  diagnostics.warnings_are_errors = true;
  EXPECT_EQ(diagnostics.errors(), 1);
  Diagnostics quiet;
  quiet.disabled_warnings = {"odd"};
  quiet.warning("odd", {}, "an odd size").notes.push_back("dropped too");
  EXPECT_EQ(quiet.text(), "");
}

TEST(Diagnostics, Json) {
  Diagnostics diagnostics;
  diagnostics.error({file("x"), 1, 1, 1}, "a \"quoted\" word");
  const std::string json = diagnostics.json();
  EXPECT_NE(json.find("\"message\": \"a \\\"quoted\\\" word\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"line\": 1"), std::string::npos) << json;
  EXPECT_NE(json.find("\"severity\": \"error\""), std::string::npos) << json;
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> known = {"d_model", "d_ff", "heads", "kv_heads"};
  EXPECT_EQ(nearest_name("d_modle", known), "d_model");
  EXPECT_EQ(nearest_name("head", known), "heads");
  EXPECT_EQ(nearest_name("banana", known), "");
  EXPECT_EQ(nearest_name("x", known), "");
}

}  // namespace
}  // namespace tfc::ir
