// A strict reader of JSON (RFC 8259) over text in memory. It hands out one token after another, so it needs
// neither memory nor recursion: who reads says what may come next, and what may not come is an error at its
// byte.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace tc {

/// What stands between two quotes: checked UTF-8 and escapes, not yet decoded.
struct JsonString {
  const char* begin = nullptr;
  const char* end = nullptr;
};

/// A string's bytes, decoded on the way.
class JsonBytes {
 public:
  explicit JsonBytes(JsonString text) : at_(text.begin), end_(text.end) {}
  /// 0 to 255, or -1 at the end.
  int next();

 private:
  void decode_escape();

  const char* at_;
  const char* end_;
  unsigned char pending_[4] = {};  // of an escape: UTF-8
  int pending_count_ = 0, pending_next_ = 0;
};

/// As strcmp.
int compare(JsonString text, const char* other);
inline bool equal(JsonString text, const char* other) { return compare(text, other) == 0; }
bool equal(JsonString a, JsonString b);
/// Decodes what fits, and a zero; gives the number of bytes that the whole has.
size_t copy(JsonString text, char* buffer, size_t size);
/// For messages: at most about 80 characters, what cannot be printed as \xNN.
struct Printable {
  char text[96];
};
Printable printable(JsonString text);

/// What went wrong, for a message: "byte 12: expected ':', found '}'".
struct JsonProblem {
  const char* expected = nullptr;  // or a whole sentence, with `found` empty
  int64_t at = 0;                  // byte, from 0
  char found[24] = {};
};

/// Every function gives false where the text is not what it asks for; `problem` then says what and where.
class JsonReader {
 public:
  JsonReader() = default;
  JsonReader(const char* text, int64_t bytes) : begin_(text), at_(text), end_(text + bytes) {}

  bool begin_object() { return punctuation('{', "'{'"); }
  bool begin_array() { return punctuation('[', "'['"); }
  /// The next member's key, with its colon; `more` is false where the object ends. `first`: none was read
  /// yet.
  bool next_member(bool first, JsonString& key, bool& more);
  bool next_element(bool first, bool& more);
  bool string(JsonString& text, const char* expected = "a string");
  /// An integer of 0 to 2^63 - 1, written without sign, point or exponent.
  bool natural(int64_t& value);
  /// Nothing but white space is left.
  bool finish();

  /// Refuses what was just read, at that place.
  bool refuse(const char* sentence);
  const JsonProblem& problem() const { return problem_; }

 private:
  void skip_space();
  bool next(bool first, char close, const char* expected, bool& more);
  bool punctuation(char wanted, const char* expected);
  bool expected(const char* what);
  bool escape();
  bool four_digits(unsigned& value);
  bool character();

  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* token_ = nullptr;  // where the last string or number began
  JsonProblem problem_;
};

}  // namespace tc
