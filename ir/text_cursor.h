// The lexical half of the reader of .tcir: words, literals, dimensions, types and attributes at a moving
// place of a text. A misfit throws ReadFailure, which only read_module catches.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attributes.h"
#include "ir/diagnostic.h"
#include "ir/type.h"

namespace tfc::ir {

struct ReadFailure {
  Place place;
  std::string message;
};

class TextCursor {
 public:
  explicit TextCursor(std::shared_ptr<const SourceFile> file);

  Place place();  // of what comes next
  [[noreturn]] void fail(std::string message);
  bool at_end();

  bool take(std::string_view mark);  // exactly these characters, if they come next
  void expect(std::string_view mark);
  bool take_word(std::string_view word);  // the same for a whole word
  void expect_word(std::string_view word);

  std::string word();  // letters, digits and _
  std::string name();  // bare or in quotes
  std::string quoted();
  bool quote_follows();
  int64_t integer();
  int small_integer();  // one that fits an int
  double real();
  Dim dim();
  Type type();
  Attribute attribute();
  Attributes attributes();          // {...}; empty where no brace follows
  std::vector<int64_t> integers();  // [1, 2]
  std::vector<double> reals();      // [1.0, 2.0]

 private:
  void skip();
  char peek();  // the next character that is not blank; 0 at the end
  void advance();
  std::string_view number_text();
  std::string found();  // "'x'", for messages

  std::shared_ptr<const SourceFile> file_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

}  // namespace tfc::ir
