#include "ir/text_cursor.h"

#include <charconv>
#include <limits>

#include "ir/text.h"

namespace tfc::ir {
namespace {

bool is_word_letter(char c) {
  return is_name_letter(c) && c != '.' && c != '+' && c != ':' && c != '-' && c != '*';
}

}  // namespace

TextCursor::TextCursor(std::shared_ptr<const SourceFile> file) : file_(std::move(file)), text_(file_->text) {}

void TextCursor::advance() {
  if (text_[at_] == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  ++at_;
}

/// Blanks, line ends, and comments: // to the end of the line.
void TextCursor::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      advance();
    } else if (text_.substr(at_).starts_with("//")) {
      while (at_ < text_.size() && text_[at_] != '\n') advance();
    } else {
      return;
    }
  }
}

char TextCursor::peek() {
  skip();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextCursor::at_end() {
  skip();
  return at_ == text_.size();
}

Place TextCursor::place() {
  skip();
  return {file_, line_, column_, 1};
}

void TextCursor::fail(std::string message) { throw ReadFailure{place(), std::move(message)}; }

std::string TextCursor::found() {
  if (at_end()) return "the end of the file";
  size_t end = at_;
  while (end < text_.size() && end - at_ < 40 && is_name_letter(text_[end])) ++end;
  const std::string_view next = text_.substr(at_, end == at_ ? 1 : end - at_);
  const unsigned char first = static_cast<unsigned char>(next[0]);
  if (first < 0x20 || first >= 0x7f) return "a byte that is no printable ASCII";
  return "'" + std::string(next) + "'";
}

bool TextCursor::take(std::string_view mark) {
  skip();
  if (!text_.substr(at_).starts_with(mark)) return false;
  for (size_t i = 0; i < mark.size(); ++i) advance();
  return true;
}

void TextCursor::expect(std::string_view mark) {
  if (!take(mark)) fail("found " + found() + ", expected '" + std::string(mark) + "'");
}

bool TextCursor::take_word(std::string_view word) {
  skip();
  const std::string_view rest = text_.substr(at_);
  if (!rest.starts_with(word) || (rest.size() > word.size() && is_name_letter(rest[word.size()])))
    return false;
  return take(word);
}

void TextCursor::expect_word(std::string_view word) {
  if (!take_word(word)) fail("found " + found() + ", expected '" + std::string(word) + "'");
}

std::string TextCursor::word() {
  std::string word;
  skip();
  while (at_ < text_.size() && is_word_letter(text_[at_])) {
    word += text_[at_];
    advance();
  }
  if (word.empty()) fail("found " + found() + ", expected a word");
  return word;
}

bool TextCursor::quote_follows() { return peek() == '"'; }

std::string TextCursor::name() {
  if (quote_follows()) return quoted();
  std::string name;
  while (at_ < text_.size() && is_name_letter(text_[at_])) {
    name += text_[at_];
    advance();
  }
  if (name.empty()) fail("found " + found() + ", expected a name");
  return name;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string TextCursor::quoted() {
  if (!quote_follows()) fail("found " + found() + ", expected a string in quotes");
  const Place here = place();
  advance();
  std::string text;
  while (true) {
    if (at_ == text_.size() || text_[at_] == '\n')
      throw ReadFailure{here, "a string does not end on its line, expected '\"'"};
    const char c = text_[at_];
    advance();
    if (c == '"') return text;
    if (c != '\\') {
      text += c;
      continue;
    }
    const std::string_view rest = text_.substr(at_);
    constexpr std::string_view kLetters = "\"\\nt", kMeanings = "\"\\\n\t";
    const size_t simple = rest.empty() ? kLetters.npos : kLetters.find(rest[0]);
    if (simple != kLetters.npos) {
      text += kMeanings[simple];
      advance();
    } else if (rest.size() >= 3 && rest[0] == 'x' && hex_digit(rest[1]) >= 0 && hex_digit(rest[2]) >= 0) {
      text += static_cast<char>(hex_digit(rest[1]) * 16 + hex_digit(rest[2]));
      for (int i = 0; i < 3; ++i) advance();
    } else {
      fail("unknown escape in a string, expected \\\", \\\\, \\n, \\t or \\x and two digits");
    }
  }
}

/// What could be a number: digits and the letters of 1e-05, inf and nan.
std::string_view TextCursor::number_text() {
  skip();
  size_t end = at_;
  while (end < text_.size() &&
         (is_word_letter(text_[end]) || text_[end] == '.' || text_[end] == '-' || text_[end] == '+'))
    ++end;
  return text_.substr(at_, end - at_);
}

template <typename T>
static bool read_number(std::string_view text, T& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && !text.empty();
}

int64_t TextCursor::integer() {
  const std::string_view text = number_text();
  int64_t value = 0;
  if (!read_number(text, value)) fail("found " + found() + ", expected an integer of 64 bits");
  take(text);
  return value;
}

int TextCursor::small_integer() {
  const Place here = place();
  const int64_t value = integer();
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    throw ReadFailure{here, std::to_string(value) + " is out of range"};
  return static_cast<int>(value);
}

double TextCursor::real() {
  const std::string_view text = number_text();
  double value = 0;
  if (!read_number(text, value)) fail("found " + found() + ", expected a real number");
  take(text);
  return value;
}

Dim TextCursor::dim() {
  skip();
  size_t end = at_;
  int depth = 0;
  while (end < text_.size()) {
    const char c = text_[end];
    const bool inside = c == '(' || is_word_letter(c) || c == '*' || c == '+' || c == '-' ||
                        (depth > 0 && (c == ',' || c == ')'));
    if (!inside) break;
    if (c == '(') ++depth;
    if (c == ')') --depth;
    ++end;
  }
  const std::string_view text = text_.substr(at_, end - at_);
  const std::optional<Dim> dim = Dim::parse(text);
  if (!dim) fail("found " + found() + ", expected a dimension such as 3072*B*T");
  take(text);
  return *dim;
}

Type TextCursor::type() {
  skip();
  const Place here = place();
  const std::string name = word();
  const std::optional<DType> dtype = dtype_from_name(name);
  if (!dtype) throw ReadFailure{here, "found '" + name + "', expected an element type: f32, f64, i32 or u8"};
  Type type{*dtype, {}};
  expect("[");
  if (take("]")) return type;
  do {
    type.shape.push_back(dim());
  } while (take(","));
  expect("]");
  return type;
}

std::vector<int64_t> TextCursor::integers() {
  std::vector<int64_t> list;
  expect("[");
  if (take("]")) return list;
  do {
    list.push_back(integer());
  } while (take(","));
  expect("]");
  return list;
}

std::vector<double> TextCursor::reals() {
  std::vector<double> list;
  expect("[");
  if (take("]")) return list;
  do {
    list.push_back(real());
  } while (take(","));
  expect("]");
  return list;
}

Attribute TextCursor::attribute() {
  if (quote_follows()) return quoted();
  if (peek() == '[') return integers();
  if (take_word("true")) return true;
  if (take_word("false")) return false;
  if (take("dim(")) {
    Dim value = dim();
    expect(")");
    return value;
  }
  const std::string_view text = number_text();
  int64_t value = 0;
  if (read_number(text, value)) return integer();
  return real();
}

Attributes TextCursor::attributes() {
  Attributes attributes;
  if (!take("{")) return attributes;
  if (take("}")) return attributes;
  do {
    const Place here = place();
    const std::string key = name();
    if (attributes.has(key)) throw ReadFailure{here, "attribute '" + key + "' is given twice"};
    expect("=");
    attributes.set(key, attribute());
  } while (take(","));
  expect("}");
  return attributes;
}

}  // namespace tfc::ir
