// docs/description.md holds the table of keys; UPDATE_GOLDEN=1 writes it anew.
#include <gtest/gtest.h>

#include "frontend/keys.h"
#include "frontend/load.h"
#include "frontend/testing.h"

namespace tfc::frontend::testing {
namespace {

const std::string kPath = std::string(TFC_SOURCE_DIR) + "/docs/description.md";

std::string generated(const std::string& what) {
  const std::string table = what.substr(std::string("keys of ").size());
  return keys_as_markdown(table == "the top level" ? "" : table);
}

/// Between "<!-- keys of model -->" and "<!-- end -->" stands what is generated.
std::string refreshed(const std::string& text, std::vector<std::string>& sections) {
  std::string result;
  size_t at = 0;
  while (true) {
    const size_t begin = text.find("<!-- ", at);
    if (begin == std::string::npos) return result + text.substr(at);
    const size_t name_end = text.find(" -->\n", begin), end = text.find("<!-- end -->", begin);
    EXPECT_NE(end, std::string::npos) << "a section without an end";
    sections.push_back(text.substr(begin + 5, name_end - begin - 5));
    result += text.substr(at, name_end + 5 - at) + generated(sections.back()) + "<!-- end -->";
    at = end + std::string("<!-- end -->").size();
  }
}

TEST(Docs, HoldTheTableOfKeys) {
  const std::string text = read_file(kPath);
  std::vector<std::string> sections;
  const std::string expected = refreshed(text, sections);
  if (updating()) write_file(kPath, expected);
  EXPECT_EQ(read_file(kPath), expected);
  for (const TableInfo& table : all_tables()) {
    const std::string name = "keys of " + std::string(table.name.empty() ? "the top level" : table.name);
    EXPECT_EQ(std::count(sections.begin(), sections.end(), name), 1) << name;
  }
}

/// The TOML blocks of the page that are whole descriptions.
TEST(Docs, ExamplesLoad) {
  const std::string text = read_file(kPath), fence = "```toml\n";
  int examples = 0;
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    const std::string example = text.substr(begin, text.find("```", begin) - begin);
    if (!example.starts_with("[model]")) continue;
    ++examples;
    load_text(example);
  }
  EXPECT_GE(examples, 3);
}

TEST(Keys, TablesAreConsistent) {
  for (const Key& key : all_keys()) {
    SCOPED_TRACE(std::string(key.table) + "." + std::string(key.name));
    const bool number = key.type == KeyType::Integer || key.type == KeyType::Real;
    EXPECT_TRUE(!number || key.least <= key.most);
    EXPECT_EQ(key.type == KeyType::Choice, !key.choices.empty());
    EXPECT_EQ(key.type == KeyType::Table, !key.subtable.empty());
    EXPECT_EQ(find_key(key.table, key.name), &key) << "twice";
  }
}

TEST(Keys, EveryNameOfOthersLeadsToOurs) {
  for (const char* name :
       {"n_embd", "hidden_size", "emb_dim", "n_layer", "num_hidden_layers", "n_head", "block_size",
        "context_length", "vocab_size", "intermediate_size", "norm_first", "layer_norm_eps",
        "num_key_value_heads", "dim_feedforward", "max_position_embeddings", "rms_norm_eps"}) {
    const std::string_view ours = our_name(name);
    const size_t dot = ours.rfind('.');
    ASSERT_NE(dot, std::string_view::npos) << name;
    EXPECT_NE(find_key(ours.substr(0, dot), ours.substr(dot + 1)), nullptr) << name << " -> " << ours;
  }
}

}  // namespace
}  // namespace tfc::frontend::testing
