#include "frontend/toml_reader.h"

#include <exception>
#include <sstream>
#include <toml.hpp>

#include "frontend/toml_scanner.h"

namespace tfc::frontend {
namespace {

/// "[error] toml::parse_table: what happened\n --> file ..." -> "what happened"
std::string reason_of(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  for (const std::string_view prefix : {"[error] ", "toml::"})
    if (line.starts_with(prefix)) line.erase(0, prefix.size());
  if (const size_t colon = line.find(": "); colon != std::string::npos && line.find(' ') > colon)
    line.erase(0, colon + 2);  // the name of toml11's own function
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line.empty() ? "this is not TOML" : "not TOML: " + line;
}

/// Gives the strings of `tree` their text. The two readers of one text must agree on its structure; where
/// they do not, nothing is filled in and the answer is false.
bool take_strings(Tree& tree, const toml::value& value) {
  switch (tree.kind) {
    case Tree::Kind::Table:
      if (!value.is_table()) return false;
      for (auto& [key, member] : tree.members) {
        const auto found = value.as_table().find(key);
        if (found == value.as_table().end() || !take_strings(member, found->second)) return false;
      }
      return true;
    case Tree::Kind::Array:
      if (!value.is_array() || value.as_array().size() != tree.elements.size()) return false;
      for (size_t i = 0; i < tree.elements.size(); ++i)
        if (!take_strings(tree.elements[i], value.as_array()[i])) return false;
      return true;
    case Tree::Kind::Text:
      if (!value.is_string()) return false;
      tree.text = value.as_string().str;
      return true;
    case Tree::Kind::Integer:
      return value.is_integer();
    case Tree::Kind::Real:
      return value.is_floating();
    case Tree::Kind::Boolean:
      return value.is_boolean();
    case Tree::Kind::Date:
      return value.is_integer();  // the scanner put one in its place
  }
  return false;
}

ir::Place place_of(const std::shared_ptr<const ir::SourceFile>& file, const toml::source_location& where) {
  return {file, static_cast<int>(where.line()), static_cast<int>(where.column()), 1};
}

}  // namespace

Document read_toml(const std::shared_ptr<const ir::SourceFile>& file, ir::Diagnostics& diagnostics) {
  Scan scan = scan_toml(file, diagnostics);
  Document document;
  document.damaged = scan.damaged;
  if (scan.hopeless) return document;
  try {
    std::istringstream stream(scan.readable);
    const toml::value value = toml::parse(stream, file->name);
    if (take_strings(scan.root, value)) {
      document.root = std::move(scan.root);
      return document;
    }
    if (!scan.damaged) diagnostics.error({file, 0, 0, 1}, "this is not TOML in a form that can be read here");
  } catch (const toml::exception& error) {
    // After an error of the scanner this one may only follow from what was left out.
    if (!scan.damaged) diagnostics.error(place_of(file, error.location()), reason_of(error.what()));
  } catch (const std::exception& error) {
    if (!scan.damaged) diagnostics.error({file, 0, 0, 1}, reason_of(error.what()));
  }
  document.damaged = true;
  return document;
}

}  // namespace tfc::frontend
