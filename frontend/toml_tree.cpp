#include "frontend/toml_tree.h"

namespace tfc::frontend {

const Tree* Tree::find(std::string_view name) const {
  for (const auto& [key, value] : members)
    if (key == name) return &value;
  return nullptr;
}

Tree* Tree::find(std::string_view name) { return const_cast<Tree*>(std::as_const(*this).find(name)); }

const Tree* Tree::valid(std::string_view name) const {
  const Tree* value = find(name);
  return value && !value->refused ? value : nullptr;
}

std::string_view kind_text(Tree::Kind kind) {
  switch (kind) {
    case Tree::Kind::Table:
      return "a table";
    case Tree::Kind::Array:
      return "an array";
    case Tree::Kind::Text:
      return "a string";
    case Tree::Kind::Integer:
      return "an integer";
    case Tree::Kind::Real:
      return "a number with a fraction";
    case Tree::Kind::Boolean:
      return "a boolean";
    case Tree::Kind::Date:
      return "a date";
  }
  return "a value";
}

}  // namespace tfc::frontend
