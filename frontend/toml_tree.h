// A TOML document as a small tree in which every key and value knows its place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"

namespace tfc::frontend {

struct Tree {
  enum class Kind : uint8_t { Table, Array, Text, Integer, Real, Boolean, Date };

  Kind kind = Kind::Table;
  ir::Place key;    // the last part of the key or table header; of an array's element: its value
  ir::Place place;  // the value
  std::string text;
  int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<std::pair<std::string, Tree>> members;  // Table: as they appear
  std::vector<Tree> elements;                         // Array
  int level = 0;         // 0: the file furthest along `extends`; higher ones override; --set comes last
  bool refused = false;  // an error has been reported: nobody reads the value any more
  bool defined = false;  // Table: by a header, dotted keys or braces, not only as part of a longer header
  bool closed = false;   // Table, Array: written with braces or brackets, so nothing can be added

  Tree* find(std::string_view name);
  const Tree* find(std::string_view name) const;  // null where absent
  /// As find, but null too where the value was refused.
  const Tree* valid(std::string_view name) const;
};

/// "an integer", "a string", ...
std::string_view kind_text(Tree::Kind kind);

/// What a document says; with syntax errors, the part that could be read.
struct Document {
  Tree root;
  bool damaged = false;  // some of it could not be read: what is missing may just be unreadable
};

}  // namespace tfc::frontend
