// The table of flags and verbs: parsing (options.cpp) and help (help.cpp) walk it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/options.h"

namespace tfc::tools {

/// What the arguments have said so far, or the first mistake.
struct Parser {
  Options options;
  std::string error;
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
};

struct Flag {
  const char* name;   // "--emit"
  const char* value;  // what help shows for the value; null: a flag without one
  unsigned verbs;     // a bit per Verb
  const char* help;   // null: not supported yet
  bool (*apply)(Parser&, const std::string& value);

  bool for_verb(Verb verb) const { return verbs & (1u << static_cast<int>(verb)); }
  /// -O2 and -Wname carry their value without a separator.
  bool is_prefix() const { return std::string_view(name) == "-O" || std::string_view(name) == "-W"; }
};

struct VerbName {
  const char* name;
  std::optional<Verb> verb;  // absent: to come
  const char* summary;
};

std::span<const Flag> all_flags();
std::span<const VerbName> all_verbs();

/// "; did you mean X?" for the nearest of the known words, "" when none is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& known);

/// "train"; "" for compiling.
std::string verb_text(Verb verb);

}  // namespace tfc::tools
