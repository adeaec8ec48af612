// The borders between folders, and the size of files, held by a test. Only text is looked at: `#include`
// lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

constexpr int kMaxLines = 450;

// Files that may be longer, each with its reason.
const std::set<std::string> kLongFiles = {};

// What each folder may include besides itself: folders, or single headers.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"ir", {}},         {"frontend", {"ir"}},
    {"passes", {"ir"}}, {"codegen", {"ir", "passes", "runtime/plan.h", "runtime/symbols.def"}},
    {"runtime", {}},    {"tools", {"ir", "frontend", "passes", "codegen", "runtime/plan.h", "runtime/api.h"}},
};

// The one header with Boost.Graph in it, for ir's sources alone.
const std::string kBoostHeader = "ir/graph_impl.h";

struct SourceText {
  std::string path;  // relative to the root, with '/'
  std::string folder() const { return path.substr(0, path.find('/')); }
  std::vector<std::string> lines;
};

SourceText text_of(std::string path, const std::string& text) {
  SourceText source{std::move(path), {}};
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
  return source;
}

std::vector<SourceText> sources_of(const std::vector<std::string>& folders) {
  const fs::path root = TFC_SOURCE_DIR;
  std::vector<SourceText> result;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".c" && extension != ".def") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      result.push_back(text_of(fs::relative(entry.path(), root).generic_string(), text.str()));
    }
  }
  return result;
}

// "ir/graph.h" of `#include "ir/graph.h"` and of `#include <ir/graph.h>`; "" for other lines.
std::string included(const std::string& line) {
  static const std::regex include(R"(^\s*#\s*include\s*["<]([^">]+)[">].*)");
  std::smatch match;
  return std::regex_match(line, match, include) ? match[1].str() : "";
}

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

// LLVM's containers, strings, streams and files; the rest of LLVM knows of code.
bool is_llvm_basics(const std::string& header) {
  return starts_with(header, "llvm/ADT/") || starts_with(header, "llvm/Support/");
}

// Why this include is not allowed, or "".
std::string objection(const std::string& file, const std::string& header) {
  const std::string folder = file.substr(0, file.find('/'));
  const std::string target = header.substr(0, header.find('/'));
  if (header == kBoostHeader && folder != "ir") return header + " is ir's own";
  if (header.find('/') != std::string::npos && kAllowed.count(target)) {
    const std::set<std::string>& allowed = kAllowed.at(folder);
    if (target == folder || allowed.count(target) || allowed.count(header)) return "";
    return folder + " may not include " + header;
  }
  if (starts_with(header, "boost/")) {
    const bool hidden = folder == "ir" && (file.ends_with(".cpp") || file == kBoostHeader);
    return hidden ? "" : "only ir/*.cpp includes Boost.Graph";
  }
  if (header == "toml.hpp" || starts_with(header, "toml11/")) {
    return folder == "frontend" && file.ends_with(".cpp") ? "" : "only frontend includes toml11";
  }
  if (starts_with(header, "llvm/") || starts_with(header, "lld/") || starts_with(header, "llvm-c/")) {
    if (folder == "runtime") return "runtime includes nothing of LLVM";
    if (!is_llvm_basics(header) && folder != "codegen") return "only codegen includes " + header;
  }
  return "";
}

const std::vector<std::string> kCompilerFolders = {"ir", "frontend", "passes", "codegen", "runtime", "tools"};

}  // namespace

TEST(Style, ObjectsToForbiddenIncludes) {
  EXPECT_EQ(objection("ir/graph.cpp", "passes/pass.h"), "ir may not include passes/pass.h");
  EXPECT_EQ(objection("passes/expand.cpp", "codegen/target.h"), "passes may not include codegen/target.h");
  EXPECT_EQ(objection("codegen/tables.cpp", "runtime/pool.h"), "codegen may not include runtime/pool.h");
  EXPECT_EQ(objection("codegen/tables.cpp", "runtime/plan.h"), "");
  EXPECT_EQ(objection("runtime/pool.cpp", "ir/dim.h"), "runtime may not include ir/dim.h");
  EXPECT_EQ(objection("ir/graph.h", "boost/graph/adjacency_list.hpp"), "only ir/*.cpp includes Boost.Graph");
  EXPECT_EQ(objection("passes/expand.cpp", "ir/graph_impl.h"), "ir/graph_impl.h is ir's own");
  EXPECT_EQ(objection("ir/graph.cpp", "boost/graph/adjacency_list.hpp"), "");
  EXPECT_EQ(objection("tools/options.cpp", "toml.hpp"), "only frontend includes toml11");
  EXPECT_EQ(objection("passes/plan.cpp", "llvm/IR/Module.h"), "only codegen includes llvm/IR/Module.h");
  EXPECT_EQ(objection("passes/plan.cpp", "llvm/ADT/SmallVector.h"), "");
  EXPECT_EQ(objection("runtime/pool.cpp", "llvm/ADT/SmallVector.h"), "runtime includes nothing of LLVM");
}

TEST(Style, ReadsIncludeLines) {
  EXPECT_EQ(included("#include \"ir/graph.h\"  // why"), "ir/graph.h");
  EXPECT_EQ(included("  # include <toml.hpp>"), "toml.hpp");
  EXPECT_EQ(included("// see #include \"ir/graph.h\""), "");
}

TEST(Style, FoldersIncludeOnlyWhatTheyMay) {
  const std::vector<SourceText> sources = sources_of(kCompilerFolders);
  ASSERT_GT(sources.size(), 20u);
  for (const SourceText& source : sources) {
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const std::string header = included(source.lines[i]);
      const std::string why = header.empty() ? "" : objection(source.path, header);
      EXPECT_EQ(why, "") << source.path << ":" << i + 1;
    }
  }
}

TEST(Style, OneFileOfTheFrontendSeesToml11) {
  std::set<std::string> files;
  for (const SourceText& source : sources_of({"frontend"})) {
    for (const std::string& line : source.lines) {
      if (included(line) == "toml.hpp") files.insert(source.path);
    }
  }
  EXPECT_LE(files.size(), 1u) << "first: " << *files.begin();
}

TEST(Style, FilesAreShort) {
  for (const SourceText& source :
       sources_of({"ir", "frontend", "passes", "codegen", "runtime", "tools", "tests"})) {
    if (kLongFiles.count(source.path)) continue;
    EXPECT_LE(source.lines.size(), static_cast<size_t>(kMaxLines))
        << source.path << ": is it still one thing?";
  }
}

TEST(Style, NamesAreSnakeCase) {
  static const std::regex snake("[a-z0-9_]+\\.(h|cpp|c|def)");
  for (const SourceText& source : sources_of(kCompilerFolders)) {
    EXPECT_TRUE(std::regex_match(source.path.substr(source.path.rfind('/') + 1), snake)) << source.path;
  }
}

TEST(Style, HeadersAreGuarded) {
  for (const SourceText& source : sources_of(kCompilerFolders)) {
    if (!source.path.ends_with(".h")) continue;
    bool guarded = false;
    for (const std::string& line : source.lines)
      guarded |= starts_with(line, "#pragma once") || starts_with(line, "#ifndef ");
    EXPECT_TRUE(guarded) << source.path;
  }
}
