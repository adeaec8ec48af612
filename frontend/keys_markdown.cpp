#include <cstdio>

#include "frontend/keys.h"

namespace tfc::frontend {
namespace {

using enum KeyType;

std::string number_text(double number) {
  if (number > -1e16 && number < 1e16 && number == static_cast<double>(static_cast<int64_t>(number)))
    return std::to_string(static_cast<int64_t>(number));
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// "integer, 1 to 4096", "\"pre\", \"post\"", ...
std::string type_text(const Key& key) {
  const std::string from = key.above_least         ? "above " + number_text(key.least) + ", at most "
                           : key.least == key.most ? ""
                                                   : number_text(key.least) + " to ";
  const std::string range = from + number_text(key.most);
  switch (key.type) {
    case Integer:
      return "integer, " + range;
    case Real:
      return "number, " + range;
    case Boolean:
      return "boolean";
    case Text:
      return "string";
    case Texts:
      return "list of strings";
    case TextOrTexts:
      return "string or list of strings";
    case Integers:
      return "list of integers";
    case Reals:
      return "list of numbers";
    case Table:
      return "table";
    case Nodes:
      return "list of nodes";
    case Choice:
      break;
  }
  std::string text;
  for (const std::string& choice : split(key.choices, '|'))
    text += (text.empty() ? "\"" : ", \"") + choice + "\"";
  return text;
}

/// Words that name values or keys stand in code spans.
std::string code_if_value(std::string_view text) {
  const bool value =
      !text.empty() && text.find(' ') == std::string_view::npos && text.find('`') == std::string_view::npos;
  const bool literal =
      value && (text.find_first_of("\"[0123456789-") == 0 || text == "true" || text == "false");
  return literal ? "`" + std::string(text) + "`" : std::string(text);
}

}  // namespace

std::string keys_as_markdown(std::string_view table) {
  std::string text = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const Key* key : keys_of(table)) {
    if (key->type == Table && key->table.empty() && key->meaning.empty()) continue;  // the sections below
    text += "| `" + std::string(key->name) + "` | " + type_text(*key) + " | " + code_if_value(key->fallback) +
            " | " + std::string(key->meaning) + " |\n";
  }
  return text;
}

}  // namespace tfc::frontend
