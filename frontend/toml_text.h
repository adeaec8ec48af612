// Characters and lines of a source text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace tfc::frontend {

/// Where lines begin, so that a place costs a binary search.
class LineIndex {
 public:
  explicit LineIndex(const std::string& text);
  /// The place of text[begin..end), cut at the end of its first line.
  ir::Place place(const std::shared_ptr<const ir::SourceFile>& file, size_t begin, size_t end) const;

 private:
  std::vector<size_t> starts_;
  size_t size_ = 0;
};

/// What is wrong with the first byte that no TOML text has (not UTF-8, a control character), and where; "" if
/// none.
std::string find_bad_character(const std::string& text, size_t& at);

}  // namespace tfc::frontend
