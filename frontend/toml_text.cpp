#include "frontend/toml_text.h"

#include <algorithm>
#include <cstdio>

#include "llvm/Support/ConvertUTF.h"

namespace tfc::frontend {

LineIndex::LineIndex(const std::string& text) : starts_{0}, size_(text.size()) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts_.push_back(i + 1);
}

ir::Place LineIndex::place(const std::shared_ptr<const ir::SourceFile>& file, size_t begin,
                           size_t end) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), begin);
  const size_t line_start = *(next - 1);
  const size_t line_end = next == starts_.end() ? size_ : *next - 1;
  const size_t length = std::max<size_t>(1, std::min(end, line_end) - std::min(begin, line_end));
  return {file, static_cast<int>(next - starts_.begin()), static_cast<int>(begin - line_start) + 1,
          static_cast<int>(length)};
}

std::string find_bad_character(const std::string& text, size_t& at) {
  const auto* bytes = reinterpret_cast<const llvm::UTF8*>(text.data());
  const llvm::UTF8* end = bytes + text.size();
  for (const llvm::UTF8* p = bytes; p < end;) {
    at = static_cast<size_t>(p - bytes);
    const unsigned byte = *p;
    char hex[8];
    std::snprintf(hex, sizeof hex, "0x%02x", byte);
    const bool newline = byte == '\n' || (byte == '\r' && p + 1 < end && p[1] == '\n');
    if ((byte < 0x20 && byte != '\t' && !newline) || byte == 0x7F)
      return std::string("the control character ") + hex + " does not belong into TOML";
    const unsigned length = llvm::getNumBytesForUTF8(*p);
    if (!llvm::isLegalUTF8Sequence(p, end)) return std::string("the byte ") + hex + " is not UTF-8";
    p += length;
  }
  return {};
}

}  // namespace tfc::frontend
