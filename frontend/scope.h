// Looking up a setting in several tables, of which later ones narrow earlier ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/toml_tree.h"

namespace tfc::frontend {

/// Tables in which a key may stand, the weakest first ([model], [attention], [block.X], [layers.X]). Keys
/// that were refused count as absent.
class Scope {
 public:
  Scope(std::initializer_list<const Tree*> tables);
  Scope narrowed(const Tree* table) const;  // null: as it is
  Scope within(std::string_view name) const;  // the tables of that name in its tables
  bool empty() const { return tables_.empty(); }

  const Tree* find(std::string_view name) const;  // null where no table has it
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool was_refused(std::string_view name) const;  // some table has it, but wrongly
  bool has_refused() const;                       // some table has a wrong or unknown key

  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;

  /// Where the value stands; where it does not, the last table's header.
  ir::Place place(std::string_view name) const;

  /// Whether `a` was written in a narrower table than `b`, or in the same one by an overriding file.
  bool overrides(std::string_view a, std::string_view b) const;

 private:
  int rank(std::string_view name) const;  // of the narrowest table that has it; -1: none
  std::vector<const Tree*> tables_;
};

}  // namespace tfc::frontend
