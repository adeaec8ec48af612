#include "frontend/sources.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "frontend/check_keys.h"
#include "frontend/presets.h"
#include "frontend/toml_reader.h"
#include "ir/text.h"

namespace tfc::frontend {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMiB = size_t{1} << 20;

/// Of one file. Descriptions have some kilobytes; a dump holds every graph of a module.
size_t most_mebibytes(const std::string& path) { return path.ends_with(".tcir") ? 256 : 4; }

void set_level(Tree& tree, int level) {
  tree.level = level;
  for (auto& [name, member] : tree.members) set_level(member, level);
  for (Tree& element : tree.elements) set_level(element, level);
}

/// `over` wins, key by key within tables; anything else is replaced whole. Tables stay where they were
/// written first unless `move_tables`.
void merge(Tree& base, Tree over, bool move_tables) {
  if (base.kind != Tree::Kind::Table || over.kind != Tree::Kind::Table) {
    base = std::move(over);
    return;
  }
  if (move_tables && over.defined) {
    base.key = over.key;
    base.place = over.place;
  }
  for (auto& [name, member] : over.members) {
    if (Tree* old = base.find(name))
      merge(*old, std::move(member), move_tables);
    else
      base.members.emplace_back(name, std::move(member));
  }
}

class Gatherer {
 public:
  explicit Gatherer(ir::Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  /// The file over what it extends.
  Document read(const std::shared_ptr<const ir::SourceFile>& file) {
    if (!is_preset(*file)) sources_.files.push_back(file->name);
    chain_.push_back(file->name);
    Document document = read_toml(file, diagnostics_);
    const Tree* extends = document.root.find("extends");
    const std::shared_ptr<const ir::SourceFile> base = extends ? base_of(*file, *extends) : nullptr;
    if (extends && !base) document.damaged = true;
    if (!base) return document;
    Document below = read(base);
    set_level(document.root, below.root.level + 1);
    below.damaged |= document.damaged;
    below.root.level = document.root.level;
    merge(below.root, std::move(document.root), true);
    return below;
  }

  Sources finish(Document document) {
    sources_.document = std::move(document);
    return std::move(sources_);
  }

 private:
  std::shared_ptr<const ir::SourceFile> base_of(const ir::SourceFile& file, const Tree& extends) {
    if (extends.kind != Tree::Kind::Text) return nullptr;  // check_keys will say so
    const fs::path folder = fs::path(file.name).parent_path();
    const fs::path path = (folder / extends.text).lexically_normal();
    if (!path.has_extension()) {
      const auto preset = find_preset(extends.text);
      return preset ? preset : unknown_preset(path, extends);
    }
    if (goes_round(path, extends)) return nullptr;
    std::string error;
    auto base = read_source(path.string(), error);
    if (!base) diagnostics_.error(extends.place, error);
    return base;
  }

  std::shared_ptr<const ir::SourceFile> unknown_preset(const fs::path& path, const Tree& extends) {
    const std::vector<std::string> names = preset_names();
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    const std::string near = ir::nearest_name(extends.text, names);
    ir::Diagnostic& error = diagnostics_.error(
        extends.place,
        "unknown preset '" + extends.text + "'" + (near.empty() ? "" : ", did you mean '" + near + "'?"));
    std::error_code ignored;
    error.notes.push_back("the presets are " + known);
    error.notes.push_back(fs::exists(path.string() + ".toml", ignored)
                              ? "did you mean the file \"" + extends.text + ".toml\"?"
                              : "a file is named with its ending: \"" + extends.text + ".toml\"");
    return nullptr;
  }

  bool goes_round(const fs::path& path, const Tree& extends) {
    std::error_code ignored;
    const auto same = [&](const std::string& name) {
      return fs::path(name).lexically_normal() == path || fs::equivalent(name, path, ignored);
    };
    const auto first = std::find_if(chain_.begin(), chain_.end(), same);
    if (first == chain_.end()) return false;
    std::string circle;
    for (auto name = first; name != chain_.end(); ++name) circle += *name + " -> ";
    diagnostics_.error(extends.place, "extends goes round in a circle: " + circle + *first);
    return true;
  }

  ir::Diagnostics& diagnostics_;
  Sources sources_;
  std::vector<std::string> chain_;
};

/// KEY=VALUE; a bare word for a value is a string, so that shells need no nested quotes.
std::string set_text(const std::string& set) {
  const size_t equals = set.find('=');
  if (equals == std::string::npos) return set;
  const std::string value = set.substr(equals + 1);
  const bool word = !value.empty() && (is_identifier(value) || value == "encoder-decoder") &&
                    value != "true" && value != "false" && value != "inf" && value != "nan";
  return word ? set.substr(0, equals + 1) + '"' + value + '"' : set;
}

void apply_set(Document& document, const std::string& set, int level, ir::Diagnostics& diagnostics) {
  const auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{"--set", set_text(set)});
  if (set.find('=') == std::string::npos || set.find_first_of("\n\r") != std::string::npos || set[0] == '[') {
    diagnostics.error({file, 1, 1, 1}, "expected KEY=VALUE on one line, such as model.layers=2");
    return;
  }
  Document over = read_toml(file, diagnostics);
  document.damaged |= over.damaged;
  if (const Tree* extends = over.root.find("extends")) {
    diagnostics.error(extends->key, "extends stands in a file, it cannot be set");
    return;
  }
  set_level(over.root, level);
  merge(document.root, std::move(over.root), false);
}

/// One more of what the description taps or edits.
void append_pattern(Document& document, const Override& pattern, int level, ir::Diagnostics& diagnostics) {
  const bool taps = pattern.kind == Override::Kind::Tap;
  const std::string key = taps ? "taps" : "edits";
  const auto file = std::make_shared<ir::SourceFile>(
      ir::SourceFile{taps ? "--tap" : "--edit", "debug." + key + " = [" + ir::quoted(pattern.text) + "]"});
  Document over = read_toml(file, diagnostics);
  document.damaged |= over.damaged;
  set_level(over.root, level);
  Tree* debug = document.root.find("debug");
  const Tree* before = debug ? debug->find(key) : nullptr;
  if (before && (before->kind == Tree::Kind::Text || before->kind == Tree::Kind::Array)) {
    Tree& added = *over.root.find("debug")->find(key);
    std::vector<Tree> all = before->elements;
    if (before->kind == Tree::Kind::Text) all = {*before};
    all.insert(all.end(), added.elements.begin(), added.elements.end());
    added.elements = std::move(all);
  }
  merge(document.root, std::move(over.root), false);
}

/// All of it, or a little more than `most`.
std::string read_stream(std::istream& stream, size_t most) {
  std::string text;
  while (stream && text.size() <= most) {
    const size_t size = text.size();
    text.resize(size + kMiB);
    stream.read(text.data() + size, kMiB);
    text.resize(size + static_cast<size_t>(stream.gcount()));
  }
  return text;
}

}  // namespace

std::shared_ptr<const ir::SourceFile> read_source(const std::string& path, std::string& error) {
  const size_t most = most_mebibytes(path);
  std::string text;
  if (path == "-") {
    text = read_stream(std::cin, most * kMiB);
  } else {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      error = "cannot read '" + path + "': it is a folder";
      return nullptr;
    }
    std::ifstream stream(path, std::ios::binary);
    if (stream) text = read_stream(stream, most * kMiB);
    if (!stream.is_open() || stream.bad()) {
      error = "cannot read '" + path + "': " + std::strerror(errno);
      return nullptr;
    }
  }
  if (text.size() > most * kMiB) {
    error = "cannot read '" + path + "': it is larger than " + std::to_string(most) + " MiB";
    return nullptr;
  }
  return std::make_shared<ir::SourceFile>(ir::SourceFile{path == "-" ? "<stdin>" : path, std::move(text)});
}

Sources gather_sources(const std::shared_ptr<const ir::SourceFile>& file,
                       const std::vector<Override>& overrides, ir::Diagnostics& diagnostics) {
  Gatherer gatherer(diagnostics);
  Document document = gatherer.read(file);
  int level = document.root.level;
  for (const Override& over : overrides) {
    if (over.kind == Override::Kind::Set) {
      apply_set(document, over.text, ++level, diagnostics);
    } else {
      append_pattern(document, over, ++level, diagnostics);
    }
  }
  return gatherer.finish(std::move(document));
}

}  // namespace tfc::frontend
