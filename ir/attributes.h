// Attributes of nodes and kernels: a small dictionary with one text form, so that every op prints and reads
// alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/dim.h"

namespace tfc::ir {

using Attribute = std::variant<bool, int64_t, double, std::string, Dim, std::vector<int64_t>>;

/// Text: true, 3, 1e-05 (a double always has '.', 'e', inf or nan), "text", dim(B*T), [1, 2].
std::string attribute_text(const Attribute& attribute);
void append_attribute(std::string& to, const Attribute& attribute);

/// Sorted by key, so that equal dictionaries print the same text. Getters abort (TFC_CHECK) on a missing key
/// or another type unless a default is given: the verifier has checked the op's keys before anybody reads
/// them.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries);

  void set(std::string_view key, Attribute value);
  void erase(std::string_view key);
  bool has(std::string_view key) const;
  const Attribute* find(std::string_view key) const;  // null where absent

  bool flag(std::string_view key, bool fallback = false) const;
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  double real(std::string_view key) const;
  double real(std::string_view key, double fallback) const;
  const std::string& text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  const Dim& dim(std::string_view key) const;
  const std::vector<int64_t>& list(std::string_view key) const;

  const std::vector<std::pair<std::string, Attribute>>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  void append_text(std::string& to) const;
  std::string print() const;  // "{axis = 1, kind = \"gelu\"}", "" when empty
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<std::pair<std::string, Attribute>> entries_;
};

}  // namespace tfc::ir
