#include "frontend/toml_numbers.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace tfc::frontend {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_digit_of(char c, int base) {
  if (base == 16) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  return c >= '0' && c < '0' + base;
}

/// Digits, single underscores between digits only.
bool is_digits(std::string_view text, int base = 10) {
  if (text.empty() || text.front() == '_' || text.back() == '_') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' ? text[i - 1] == '_' : !is_digit_of(text[i], base)) return false;
  }
  return true;
}

std::string without_underscores(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != '_') plain += c;
  return plain;
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return text;
}

bool has_leading_zero(std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; }

bool is_date(std::string_view word) {
  const auto digits_then = [&](size_t count, char mark) {
    if (word.size() <= count || word[count] != mark) return false;
    for (size_t i = 0; i < count; ++i)
      if (!is_digit(word[i])) return false;
    return true;
  };
  return digits_then(4, '-') || digits_then(2, ':');
}

bool set_integer(std::string_view word, const std::string& digits, int base, Tree& tree, std::string& error) {
  errno = 0;
  tree.kind = Tree::Kind::Integer;
  tree.integer = std::strtoll(digits.c_str(), nullptr, base);
  if (errno != ERANGE) return true;
  error = "the number " + std::string(word) + " does not fit into 64 bits";
  return false;
}

bool set_real(std::string_view word, Tree& tree, std::string& error) {
  const std::string plain = without_underscores(word);
  tree.kind = Tree::Kind::Real;
  tree.real = std::strtod(plain.c_str(), nullptr);
  const std::string_view mantissa = std::string_view(plain).substr(0, plain.find_first_of("eE"));
  const bool vanished = tree.real == 0 && mantissa.find_first_of("123456789") != std::string_view::npos;
  if (std::isfinite(tree.real) && !vanished) return true;
  error = "the number " + std::string(word) + " is too " + (vanished ? "small" : "large") + " for a double";
  return false;
}

/// digits [. digits] [e [sign] digits]
bool is_real(std::string_view text) {
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    if (!is_digits(without_sign(text.substr(e + 1)))) return false;
    text = text.substr(0, e);
  }
  const size_t dot = text.find('.');
  if (dot != std::string_view::npos && !is_digits(text.substr(dot + 1))) return false;
  return is_digits(text.substr(0, dot)) && (dot != std::string_view::npos || e != std::string_view::npos);
}

bool read_number(std::string_view word, Tree& tree, std::string& error) {
  const std::string_view digits = without_sign(word);
  for (const auto& [mark, base] : {std::pair("0x", 16), std::pair("0o", 8), std::pair("0b", 2)})
    if (word.starts_with(mark) && is_digits(word.substr(2), base))
      return set_integer(word, without_underscores(word.substr(2)), base, tree, error);
  const bool integer = is_digits(digits);
  if (!integer && !is_real(digits)) {
    error = "'" + std::string(word) + "' is not a number";
    return false;
  }
  if (has_leading_zero(without_underscores(digits.substr(0, digits.find_first_of(".eE"))))) {
    error = "the number " + std::string(word) + " begins with a zero";
    return false;
  }
  return integer ? set_integer(word, without_underscores(word), 10, tree, error)
                 : set_real(word, tree, error);
}

}  // namespace

bool read_scalar(std::string_view word, Tree& tree, std::string& error) {
  if (word == "true" || word == "false") {
    tree.kind = Tree::Kind::Boolean;
    tree.boolean = word == "true";
    return true;
  }
  const std::string_view unsigned_word = without_sign(word);
  if (unsigned_word == "inf" || unsigned_word == "nan") {
    tree.kind = Tree::Kind::Real;
    tree.real = std::strtod(std::string(word).c_str(), nullptr);
    return true;
  }
  if (is_date(word)) {
    tree.kind = Tree::Kind::Date;
    return true;
  }
  if (!unsigned_word.empty() && is_digit(unsigned_word[0])) return read_number(word, tree, error);
  error = "expected a value, found '" + std::string(word) + "'; a string stands in quotes: \"" +
          std::string(word) + "\"";
  return false;
}

}  // namespace tfc::frontend
