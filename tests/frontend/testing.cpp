#include "frontend/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/build_blocks.h"
#include "frontend/load.h"

namespace tfc::frontend::testing {

namespace fs = std::filesystem;

std::string folder(const std::string& name) {
  return std::string(TFC_SOURCE_DIR) + "/tests/frontend/" + name;
}

std::vector<std::string> toml_files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

bool updating() {
  const char* update = std::getenv("UPDATE_GOLDEN");
  return update && std::string(update) == "1";
}

std::vector<Override> overrides_of(const std::vector<std::string>& sets) {
  std::vector<Override> overrides;
  for (const std::string& set : sets) overrides.push_back({Override::Kind::Set, set});
  return overrides;
}

namespace {

std::optional<Description> load(const std::string& text, const std::vector<std::string>& sets,
                                ir::Diagnostics& diagnostics) {
  return load_description(std::make_shared<ir::SourceFile>(ir::SourceFile{"model.toml", text}), overrides_of(sets),
                          diagnostics);
}

}  // namespace

Description load_text(const std::string& text, const std::vector<std::string>& sets) {
  ir::Diagnostics diagnostics;
  auto description = load(text, sets, diagnostics);
  EXPECT_TRUE(description) << diagnostics.text() << text;
  return description.value_or(Description());
}

std::string errors_of(const std::string& text, const std::vector<std::string>& sets) {
  ir::Diagnostics diagnostics;
  EXPECT_FALSE(load(text, sets, diagnostics)) << text;
  return diagnostics.text();
}

ir::Module blocks_of(const Description& description) {
  ir::Module module = build_blocks(description, ir::DType::F32);
  ir::Diagnostics diagnostics;
  EXPECT_TRUE(ir::verify(module, diagnostics)) << diagnostics.text();
  return module;
}

std::string text_without_places(const ir::Module& module) { return ir::print(module, ir::Places::Without); }

std::string decoder(const std::string& model_lines, const std::string& rest) {
  return "[model]\nkind = \"decoder\"\nd_model = 64\nlayers = 4\nheads = 4\nvocab = 100\nmax_seq = 32\n" +
         model_lines + "\n" + rest;
}

}  // namespace tfc::frontend::testing
