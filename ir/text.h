// Literals of the text form, shared by its writers (attributes, print) and its reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tfc::ir {

/// "text" in quotes; control characters, quotes and backslashes escaped.
std::string quoted(std::string_view text);

/// Shortest text that reads back to the same double; always has '.', 'e', "inf" or "nan".
std::string real_text(double value);

/// Letters, digits and the marks of names ("layers.0.attn.q.weight", "a+b", "grads:*"); they need no quotes.
bool is_name_letter(char c);

/// The name, in quotes if any of its letters needs them.
std::string name_text(std::string_view name);
void append_name(std::string& to, std::string_view name);

void append_number(std::string& to, int64_t number);

}  // namespace tfc::ir
