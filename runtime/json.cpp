#include "runtime/json.h"

#include <stdio.h>
#include <string.h>

namespace tc {

namespace {

constexpr unsigned kLastCodePoint = 0x10FFFF;

bool is_high_surrogate(unsigned code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(unsigned code) { return code >= 0xDC00 && code < 0xE000; }

/// -1: none.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Of four digits that were checked.
unsigned hex_number(const char* digits) {
  unsigned value = 0;
  for (int i = 0; i < 4; ++i) value = value * 16 + static_cast<unsigned>(hex_digit(digits[i]));
  return value;
}

int to_utf8(unsigned code, unsigned char out[4]) {
  if (code < 0x80) {
    out[0] = static_cast<unsigned char>(code);
    return 1;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned char kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out[0] = static_cast<unsigned char>(kLead[more] | (code >> (6 * more)));
  for (int i = 1; i <= more; ++i) {
    out[i] = static_cast<unsigned char>(0x80 | ((code >> (6 * (more - i))) & 0x3F));
  }
  return more + 1;
}

/// Bytes of the UTF-8 sequence that begins here; 0: it is none (overlong forms and surrogates are none
/// either).
int utf8_length(const char* text, const char* end) {
  const auto byte = [&](int i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || end - text < length) return 0;
  unsigned code = lead & (0x7Fu >> length);
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = is_high_surrogate(code) || is_low_surrogate(code);
  return code < kLeast[length] || code > kLastCodePoint || surrogate ? 0 : length;
}

}  // namespace

// -- strings
// ----------------------------------------------------------------------------------------------------------

void JsonBytes::decode_escape() {
  pending_next_ = 0;
  const char kind = at_[1];
  at_ += 2;
  if (kind != 'u') {
    static const char kKinds[] = "bfnrt", kMeanings[] = "\b\f\n\r\t";
    const char* known = strchr(kKinds, kind);
    pending_[0] = static_cast<unsigned char>(known ? kMeanings[known - kKinds] : kind);
    pending_count_ = 1;
    return;
  }
  unsigned code = hex_number(at_);
  at_ += 4;
  if (is_high_surrogate(code)) {  // the reader has seen to its other half
    code = 0x10000 + ((code - 0xD800) << 10) + (hex_number(at_ + 2) - 0xDC00);
    at_ += 6;
  }
  pending_count_ = to_utf8(code, pending_);
}

int JsonBytes::next() {
  if (pending_next_ < pending_count_) return pending_[pending_next_++];
  if (at_ == end_) return -1;
  if (*at_ != '\\') return static_cast<unsigned char>(*at_++);
  decode_escape();
  return pending_[pending_next_++];
}

int compare(JsonString text, const char* other) {
  JsonBytes bytes(text);
  for (;; ++other) {
    const int a = bytes.next(), b = static_cast<unsigned char>(*other);
    if (a < 0) return b ? -1 : 0;
    if (!b) return 1;  // a zero inside the text too
    if (a != b) return a < b ? -1 : 1;
  }
}

bool equal(JsonString a, JsonString b) {
  JsonBytes first(a), second(b);
  for (;;) {
    const int byte = first.next();
    if (byte != second.next()) return false;
    if (byte < 0) return true;
  }
}

size_t copy(JsonString text, char* buffer, size_t size) {
  JsonBytes bytes(text);
  size_t length = 0;
  for (int byte = bytes.next(); byte >= 0; byte = bytes.next(), ++length) {
    if (length + 1 < size) buffer[length] = static_cast<char>(byte);
  }
  if (size > 0) buffer[length < size ? length : size - 1] = 0;
  return length;
}

Printable printable(JsonString text) {
  constexpr size_t kMost = 80;
  Printable result;
  size_t length = 0;
  JsonBytes bytes(text);
  for (int byte = bytes.next(); byte >= 0; byte = bytes.next()) {
    if (length >= kMost) {
      memcpy(result.text + length, "...", 4);
      return result;
    }
    const bool plain = byte >= 0x20 && byte < 0x7F;
    length += static_cast<size_t>(
        snprintf(result.text + length, sizeof result.text - length, plain ? "%c" : "\\x%02x", byte));
  }
  result.text[length] = 0;
  return result;
}

// -- the reader
// ----------------------------------------------------------------------------------------------------------

bool JsonReader::expected(const char* what) {
  problem_.expected = what;
  problem_.at = at_ - begin_;
  const unsigned char byte = at_ < end_ ? static_cast<unsigned char>(*at_) : 0;
  if (at_ >= end_) {
    snprintf(problem_.found, sizeof problem_.found, "the header's end");
  } else if (byte > 0x20 && byte < 0x7F) {
    snprintf(problem_.found, sizeof problem_.found, "'%c'", byte);
  } else {
    snprintf(problem_.found, sizeof problem_.found, "the byte 0x%02x", byte);
  }
  return false;
}

bool JsonReader::refuse(const char* sentence) {
  problem_.expected = sentence;
  problem_.at = token_ - begin_;
  problem_.found[0] = 0;
  return false;
}

void JsonReader::skip_space() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
}

bool JsonReader::punctuation(char wanted, const char* what) {
  skip_space();
  if (at_ >= end_ || *at_ != wanted) return expected(what);
  ++at_;
  return true;
}

bool JsonReader::next(bool first, char close, const char* what, bool& more) {
  skip_space();
  more = true;
  if (at_ < end_ && *at_ == close) {
    ++at_;
    more = false;
    return true;
  }
  if (first) return true;
  if (at_ >= end_ || *at_ != ',') return expected(what);
  ++at_;
  return true;
}

bool JsonReader::next_member(bool first, JsonString& key, bool& more) {
  if (!next(first, '}', "',' or '}'", more)) return false;
  if (!more) return true;
  const JsonString none;
  key = none;
  if (!string(key, first ? "a name in quotes, or '}'" : "a name in quotes")) return false;
  const char* const began = token_;
  const bool has_colon = punctuation(':', "':'");
  token_ = began;
  return has_colon;
}

bool JsonReader::next_element(bool first, bool& more) { return next(first, ']', "',' or ']'", more); }

bool JsonReader::four_digits(unsigned& value) {
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ >= end_ || hex_digit(*at_) < 0) return expected("four hexadecimal digits after \\u");
  }
  value = hex_number(at_ - 4);
  return true;
}

bool JsonReader::escape() {
  ++at_;
  if (at_ >= end_ || !*at_ || !strchr("\"\\/bfnrtu", *at_))
    return expected("an escape such as \\n or \\u00e9");
  if (*at_++ != 'u') return true;
  unsigned code = 0, low = 0;
  if (!four_digits(code)) return false;
  if (is_low_surrogate(code)) {
    at_ -= 4;
    return expected("a character, not the second half of one");
  }
  if (!is_high_surrogate(code)) return true;
  if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') return expected("the second half of a character");
  at_ += 2;
  if (!four_digits(low)) return false;
  if (is_low_surrogate(low)) return true;
  at_ -= 4;
  return expected("the second half of a character");
}

bool JsonReader::character() {
  if (*at_ == '\\') return escape();
  if (static_cast<unsigned char>(*at_) < 0x20) return expected("an escape in place of a control character");
  const int length = utf8_length(at_, end_);
  if (length == 0) return expected("UTF-8");
  at_ += length;
  return true;
}

bool JsonReader::string(JsonString& text, const char* what) {
  skip_space();
  token_ = at_;
  if (at_ >= end_ || *at_ != '"') return expected(what);
  text.begin = ++at_;
  while (at_ < end_ && *at_ != '"') {
    if (!character()) return false;
  }
  if (at_ >= end_) return expected("a closing quote");
  text.end = at_++;
  return true;
}

bool JsonReader::natural(int64_t& value) {
  constexpr const char* kWhat = "an integer from 0 to 9223372036854775807";
  skip_space();
  token_ = at_;
  if (at_ >= end_ || *at_ < '0' || *at_ > '9') return expected(kWhat);
  const bool zero = *at_ == '0';
  value = 0;
  for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
    if (zero && at_ > token_) return expected("no digit after a leading zero");
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{*at_ - '0'}, &value)) {
      return refuse("the integer is larger than 9223372036854775807");
    }
  }
  if (at_ < end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E')) return expected(kWhat);
  return true;
}

bool JsonReader::finish() {
  skip_space();
  return at_ == end_ || expected("nothing more");
}

}  // namespace tc
