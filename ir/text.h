// Literals of the text form, shared by its writers (attributes, print) and its reader.
#pragma once

#include <string>
#include <string_view>

namespace tfc::ir {

/// "text" in quotes; control characters, quotes and backslashes escaped.
std::string quoted(std::string_view text);

/// Shortest text that reads back to the same double; always has '.', 'e', "inf" or "nan".
std::string real_text(double value);

}  // namespace tfc::ir
