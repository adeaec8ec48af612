#include "ir/attributes.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ir/check.h"
#include "ir/text.h"

namespace tfc::ir {
namespace {

const char* type_word(const Attribute& attribute) {
  constexpr const char* kWords[] = {"a boolean", "an integer",  "a real number",
                                    "a string",  "a dimension", "a list"};
  return kWords[attribute.index()];
}

template <typename T>
const T& get(const Attributes& attributes, std::string_view key) {
  const Attribute* attribute = attributes.find(key);
  TFC_CHECK(attribute != nullptr,
            "attribute '" + std::string(key) + "' is missing from {" + attributes.print() + "}");
  const T* value = std::get_if<T>(attribute);
  TFC_CHECK(value != nullptr, "attribute '" + std::string(key) + "' is " + type_word(*attribute) +
                                  ", expected " + type_word(Attribute(T{})));
  return *value;
}

auto position(auto& entries, std::string_view key) {
  return std::lower_bound(entries.begin(), entries.end(), key,
                          [](const auto& entry, std::string_view k) { return entry.first < k; });
}

}  // namespace

static void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          constexpr char kHex[] = "0123456789abcdef";
          out += "\\x";
          out += kHex[(c >> 4) & 15];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value).ptr;  // the shortest that reads back the same
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '+' || c == ':' || c == '-' || c == '*';
}

void append_name(std::string& to, std::string_view name) {
  if (!name.empty() && std::all_of(name.begin(), name.end(), is_name_letter)) {
    to += name;
  } else {
    append_quoted(to, name);
  }
}

std::string name_text(std::string_view name) {
  std::string text;
  append_name(text, name);
  return text;
}

void append_number(std::string& to, int64_t number) {
  char buffer[24];
  to.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
}

static void append_list(std::string& to, const std::vector<int64_t>& list) {
  to += '[';
  bool first = true;
  for (const int64_t element : list) {
    if (!first) to += ", ";
    first = false;
    append_number(to, element);
  }
  to += ']';
}

void append_attribute(std::string& to, const Attribute& attribute) {
  if (const bool* flag = std::get_if<bool>(&attribute)) {
    to += *flag ? "true" : "false";
  } else if (const int64_t* integer = std::get_if<int64_t>(&attribute)) {
    append_number(to, *integer);
  } else if (const double* real = std::get_if<double>(&attribute)) {
    to += real_text(*real);
  } else if (const std::string* text = std::get_if<std::string>(&attribute)) {
    append_quoted(to, *text);
  } else if (const Dim* dim = std::get_if<Dim>(&attribute)) {
    to += "dim(";
    dim->append_text(to);
    to += ')';
  } else {
    append_list(to, std::get<std::vector<int64_t>>(attribute));
  }
}

std::string attribute_text(const Attribute& attribute) {
  std::string text;
  append_attribute(text, attribute);
  return text;
}

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries) {
  entries_.reserve(entries.size() + 2);  // for what is set later
  for (const auto& [key, value] : entries) set(key, value);
}

void Attributes::set(std::string_view key, Attribute value) {
  const auto at = position(entries_, key);
  if (at != entries_.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::string(key), std::move(value));
  }
}

void Attributes::erase(std::string_view key) {
  const auto at = position(entries_, key);
  if (at != entries_.end() && at->first == key) entries_.erase(at);
}

bool Attributes::has(std::string_view key) const { return find(key) != nullptr; }

const Attribute* Attributes::find(std::string_view key) const {
  const auto at = position(entries_, key);
  return at != entries_.end() && at->first == key ? &at->second : nullptr;
}

bool Attributes::flag(std::string_view key, bool fallback) const {
  return has(key) ? get<bool>(*this, key) : fallback;
}

int64_t Attributes::integer(std::string_view key) const { return get<int64_t>(*this, key); }

int64_t Attributes::integer(std::string_view key, int64_t fallback) const {
  return has(key) ? get<int64_t>(*this, key) : fallback;
}

double Attributes::real(std::string_view key) const { return get<double>(*this, key); }

double Attributes::real(std::string_view key, double fallback) const {
  return has(key) ? get<double>(*this, key) : fallback;
}

const std::string& Attributes::text(std::string_view key) const { return get<std::string>(*this, key); }

std::string Attributes::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? get<std::string>(*this, key) : std::string(fallback);
}

const Dim& Attributes::dim(std::string_view key) const { return get<Dim>(*this, key); }

const std::vector<int64_t>& Attributes::list(std::string_view key) const {
  return get<std::vector<int64_t>>(*this, key);
}

void Attributes::append_text(std::string& to) const {
  if (entries_.empty()) return;
  to += '{';
  bool first = true;
  for (const auto& [key, value] : entries_) {
    if (!first) to += ", ";
    first = false;
    append_name(to, key);
    to += " = ";
    append_attribute(to, value);
  }
  to += '}';
}

std::string Attributes::print() const {
  std::string text;
  append_text(text);
  return text;
}

}  // namespace tfc::ir
