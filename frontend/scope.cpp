#include "frontend/scope.h"

#include <algorithm>

namespace tfc::frontend {

Scope::Scope(std::initializer_list<const Tree*> tables) {
  for (const Tree* table : tables)
    if (table) tables_.push_back(table);
}

Scope Scope::narrowed(const Tree* table) const {
  Scope scope = *this;
  if (table) scope.tables_.push_back(table);
  return scope;
}

Scope Scope::within(std::string_view name) const {
  Scope scope{};
  for (const Tree* table : tables_) scope = scope.narrowed(table->valid(name));
  return scope;
}

int Scope::rank(std::string_view name) const {
  for (size_t i = tables_.size(); i-- > 0;)
    if (tables_[i]->valid(name)) return static_cast<int>(i);
  return -1;
}

const Tree* Scope::find(std::string_view name) const {
  const int index = rank(name);
  return index < 0 ? nullptr : tables_[static_cast<size_t>(index)]->valid(name);
}

bool Scope::was_refused(std::string_view name) const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const Tree* table) {
    const Tree* value = table->find(name);
    return value && value->refused;
  });
}

bool Scope::has_refused() const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const Tree* table) {
    return std::any_of(table->members.begin(), table->members.end(),
                       [](const auto& member) { return member.second.refused; });
  });
}

int64_t Scope::integer(std::string_view name, int64_t fallback) const {
  const Tree* value = find(name);
  return value ? value->integer : fallback;
}

double Scope::real(std::string_view name, double fallback) const {
  const Tree* value = find(name);
  return value ? value->real : fallback;
}

bool Scope::flag(std::string_view name, bool fallback) const {
  const Tree* value = find(name);
  return value ? value->boolean : fallback;
}

std::string Scope::text(std::string_view name, std::string_view fallback) const {
  const Tree* value = find(name);
  return value ? value->text : std::string(fallback);
}

ir::Place Scope::place(std::string_view name) const {
  if (const Tree* value = find(name)) return value->place;
  return tables_.empty() ? ir::Place() : tables_.back()->place;
}

bool Scope::overrides(std::string_view a, std::string_view b) const {
  const int left = rank(a), right = rank(b);
  if (left != right) return left > right;
  return left >= 0 && find(a)->level > find(b)->level;
}

}  // namespace tfc::frontend
