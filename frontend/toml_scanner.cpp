#include "frontend/toml_scanner.h"

#include <algorithm>
#include <cctype>

#include "frontend/toml_numbers.h"
#include "frontend/toml_text.h"

namespace tfc::frontend {
namespace {

constexpr int kDeepest = 32;         // brackets within brackets
constexpr size_t kLongestKey = 16;   // parts of a dotted key
constexpr size_t kMostKeys = 10000;  // in one table

/// Thrown where a statement cannot be read; the statement is left out and reading goes on after it.
struct Unreadable {};

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool is_word_character(char c) { return is_key_character(c) || c == '+' || c == '.' || c == ':'; }

struct KeyPart {
  std::string name;
  ir::Place place;
};

class Scanner {
 public:
  Scanner(const std::shared_ptr<const ir::SourceFile>& file, ir::Diagnostics& diagnostics)
      : file_(file), text_(file->text), lines_(text_), diagnostics_(diagnostics) {}

  Scan run() {
    scan_.readable = text_;
    scan_.root.defined = true;
    scan_.root.place = scan_.root.key = {file_, 0, 0, 1};
    if (!check_characters()) {
      scan_.hopeless = scan_.damaged = true;
      return std::move(scan_);
    }
    if (text_.starts_with("\xEF\xBB\xBF")) {  // a byte order mark
      position_ = 3;
      std::fill_n(scan_.readable.begin(), 3, ' ');
    }
    table_ = &scan_.root;
    while (skip_blank_lines()) statement();
    return std::move(scan_);
  }

 private:
  // -- statements
  // ----------------------------------------------------------------------------------------------

  void statement() {
    const size_t begin = position_;
    const bool header = peek() == '[';
    depth_ = 0;
    try {
      header ? table_header() : key_and_value(*table_, true);
    } catch (const Unreadable&) {
      scan_.damaged = true;
      recover(begin, header);
      for (size_t i = begin; i < position_; ++i)
        if (scan_.readable[i] != '\n' && scan_.readable[i] != '\r') scan_.readable[i] = ' ';
    }
  }

  /// To the next statement: the next line, or where one looks like a statement again after an open bracket;
  /// keys under an unreadable header belong to no table, so they are left out too.
  void recover(size_t begin, bool header) {
    if (position_ == begin || text_[position_ - 1] != '\n') skip_line();
    if (header) {
      while (position_ < text_.size() && peek() != '[') skip_line();
    } else if (depth_ > 0) {
      while (position_ < text_.size() && !looks_like_statement()) skip_line();
    }
  }

  bool looks_like_statement() const {
    const std::string_view rest = std::string_view(text_).substr(position_);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.starts_with('[')) return line.size() > 1 && (is_key_character(line[1]) || line[1] == '[');
    const size_t end =
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.\"' \t");
    return end != std::string_view::npos && end > 0 && line[end] == '=' && is_key_character(line[0]);
  }

  /// header = "[" key "]" | "[[" key "]]"
  void table_header() {
    const size_t begin = position_++;
    const bool element = peek() == '[';
    if (element) ++position_;
    const std::vector<KeyPart> key = dotted_key();
    for (int i = 0; i < (element ? 2 : 1); ++i) {
      if (peek() != ']') fail(here(), "expected ']' at the end of the table's name, found " + found());
      ++position_;
    }
    const ir::Place place = span(begin);
    end_of_line();
    Tree* table = &scan_.root;
    for (size_t i = 0; i + 1 < key.size(); ++i) table = &step_into(*table, key[i], true);
    const KeyPart& last = key.back();
    table_ = element ? &new_element(*table, last, place) : &define_table(*table, last, place);
  }

  Tree& define_table(Tree& parent, const KeyPart& name, const ir::Place& place) {
    Tree* table = parent.find(name.name);
    if (!table)
      table = &insert(parent, name);
    else if (table->kind != Tree::Kind::Table || table->defined)
      fail_twice(name, *table);
    table->defined = true;
    table->key = name.place;
    table->place = place;
    return *table;
  }

  Tree& new_element(Tree& parent, const KeyPart& name, const ir::Place& place) {
    Tree* array = parent.find(name.name);
    if (!array) {
      array = &insert(parent, name);
      array->kind = Tree::Kind::Array;
      array->place = place;
    } else if (array->kind != Tree::Kind::Array || array->closed) {
      fail_twice(name, *array);
    }
    Tree& table = array->elements.emplace_back();
    table.key = name.place;
    table.place = place;
    table.defined = true;
    return table;
  }

  /// The table named by one part of a longer key, made where there is none.
  Tree& step_into(Tree& parent, const KeyPart& part, bool header) {
    Tree* table = parent.find(part.name);
    if (!table) {
      Tree& made = insert(parent, part);
      made.place = part.place;
      made.defined = !header;
      return made;
    }
    if (header && table->kind == Tree::Kind::Array && !table->closed) return table->elements.back();
    if (table->kind != Tree::Kind::Table)
      fail(part.place,
           "'" + part.name + "' is " + std::string(kind_text(table->kind)) + " already, not a table",
           "it was set at " + table->key.text());
    if (table->closed)
      fail(part.place, "'" + part.name + "' was written whole in braces, nothing can be added",
           "it was set at " + table->key.text());
    return *table;
  }

  /// key_and_value = key "=" value; what cannot be read leaves the tree as it was
  void key_and_value(Tree& table, bool statement) {
    const std::vector<KeyPart> key = dotted_key();
    if (peek() != '=') fail(here(), "expected '=' after '" + key.back().name + "', found " + found());
    ++position_;
    skip_spaces();
    if (at_line_end()) fail(here(), "expected a value after '" + key.back().name + " =', found " + found());
    Tree read = value();
    if (statement) end_of_line();
    Tree* parent = &table;
    for (size_t i = 0; i + 1 < key.size(); ++i) parent = &step_into(*parent, key[i], false);
    if (const Tree* old = parent->find(key.back().name)) fail_twice(key.back(), *old);
    Tree& made = insert(*parent, key.back());
    read.key = key.back().place;
    made = std::move(read);
  }

  Tree& insert(Tree& table, const KeyPart& name) {
    if (table.members.size() >= kMostKeys)
      fail(name.place, "a table with more than " + std::to_string(kMostKeys) + " keys is too large");
    Tree& made = table.members.emplace_back(name.name, Tree()).second;
    made.key = name.place;
    return made;
  }

  // -- keys
  // ----------------------------------------------------------------------------------------------------

  std::vector<KeyPart> dotted_key() {
    std::vector<KeyPart> parts;
    while (true) {
      skip_spaces();
      parts.push_back(key_part());
      skip_spaces();
      if (peek() != '.') return parts;
      if (parts.size() == kLongestKey) fail(here(), "a key of more than 16 parts");
      ++position_;
    }
  }

  KeyPart key_part() {
    const size_t begin = position_;
    if (peek() == '"' || peek() == '\'') {
      const char quote = peek();
      const size_t end = text_.find_first_of(std::string{quote, '\n'}, begin + 1);
      if (end == std::string::npos || text_[end] != quote)
        fail(here(), "the quoted key does not end on its line");
      std::string name = text_.substr(begin + 1, end - begin - 1);
      if (quote == '"' && name.find('\\') != std::string::npos)
        fail(here(), "a key with a backslash names nothing here");
      position_ = end + 1;
      return {std::move(name), span(begin)};
    }
    while (position_ < text_.size() && is_key_character(text_[position_])) ++position_;
    if (position_ == begin) fail(here(), "expected a key, found " + found());
    return {text_.substr(begin, position_ - begin), span(begin)};
  }

  // -- values
  // --------------------------------------------------------------------------------------------------

  Tree value() {
    const size_t begin = position_;
    Tree tree;
    switch (peek()) {
      case '"':
      case '\'':
        string(tree);
        break;
      case '[':
        array(tree);
        break;
      case '{':
        inline_table(tree);
        break;
      default:
        scalar(tree);
    }
    tree.place = tree.key = span(begin);
    return tree;
  }

  void scalar(Tree& tree) {
    const size_t begin = position_;
    while (position_ < text_.size() && is_word_character(text_[position_])) ++position_;
    if (position_ == begin) fail(here(), "expected a value, found " + found());
    std::string error;
    const bool good = read_scalar(text_.substr(begin, position_ - begin), tree, error);
    if (!good) fail(span(begin), error);
    if (tree.kind == Tree::Kind::Date) date(begin);
  }

  /// Nothing here is a date; toml11 sees a number in its place, as it stops at dates that do not exist.
  void date(size_t begin) {
    const bool has_time = peek() == ' ' && position_ + 1 < text_.size() && text_[position_ + 1] >= '0' &&
                          text_[position_ + 1] <= '9';
    if (has_time) ++position_;
    while (position_ < text_.size() && is_word_character(text_[position_])) ++position_;
    std::fill(scan_.readable.begin() + static_cast<long>(begin),
              scan_.readable.begin() + static_cast<long>(position_), ' ');
    scan_.readable[begin] = '0';
  }

  /// Steps over a string; toml11 reads it.
  void string(Tree& tree) {
    tree.kind = Tree::Kind::Text;
    const size_t begin = position_;
    const char quote = peek();
    const std::string three(3, quote);
    const bool long_string = text_.compare(begin, 3, three) == 0;
    position_ += long_string ? 3 : 1;
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (c == '\n' && !long_string) break;
      if (c == '\\' && quote == '"') {
        escape(long_string);
        continue;
      }
      if (c == quote && (!long_string || text_.compare(position_, 3, three) == 0)) {
        position_ += long_string ? 3 : 1;
        while (long_string && peek() == quote)
          ++position_;  // quotes just before the end belong to the string
        return;
      }
      ++position_;
    }
    fail(lines_.place(file_, begin, begin + 1),
         long_string ? "the string does not end" : "the string does not end on its line");
  }

  /// escape = "\" one of btnfr"\ | "\u" 4 hex digits | "\U" 8 hex digits; in long strings also a newline
  void escape(bool long_string) {
    const size_t begin = position_++;
    const char c = peek();
    ++position_;
    const size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    for (size_t i = 0; i < digits; ++i, ++position_)
      if (!std::isxdigit(static_cast<unsigned char>(peek())))
        fail(span(begin), "expected " + std::to_string(digits) + " hexadecimal digits after '\\" + c + "'");
    const bool newline = long_string && (c == '\n' || c == '\r' || c == ' ' || c == '\t');
    if (digits == 0 && !newline && std::string_view("btnfr\"\\").find(c) == std::string_view::npos)
      fail(span(begin),
           "unknown escape " + text_.substr(begin, 2) + " in a string; a backslash is written \\\\");
  }

  void array(Tree& tree) {
    tree.kind = Tree::Kind::Array;
    tree.closed = true;
    open();
    while (true) {
      skip_to_item();
      if (peek() == ']') break;
      tree.elements.push_back(value());
      skip_to_item();
      if (peek() == ',')
        ++position_;
      else if (peek() != ']')
        fail(here(), "expected ',' or ']' in the array, found " + found());
    }
    close();
  }

  void inline_table(Tree& tree) {
    tree.defined = true;
    open();
    skip_spaces();
    while (peek() != '}') {
      key_and_value(tree, false);
      skip_spaces();
      if (peek() == '}') break;
      if (peek() != ',') fail(here(), "expected ',' or '}' in the table, found " + found());
      ++position_;
      skip_spaces();
      if (at_line_end()) fail(here(), "a table in braces stands on one line, found " + found());
      if (peek() == '}') fail(here(), "expected a key after ',', found '}'");
    }
    close();
    tree.closed = true;
  }

  void open() {
    if (++depth_ > kDeepest)
      fail(here(), "brackets are nested more than " + std::to_string(kDeepest) + " deep");
    ++position_;
  }

  void close() {
    --depth_;
    ++position_;
  }

  // -- characters
  // ----------------------------------------------------------------------------------------------

  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  bool at_line_end() const {
    return position_ >= text_.size() || peek() == '\n' || peek() == '\r' || peek() == '#';
  }

  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t') ++position_;
  }

  void skip_line() {
    const size_t newline = text_.find('\n', position_);
    position_ = newline == std::string::npos ? text_.size() : newline + 1;
  }

  /// Within an array: spaces, newlines and comments.
  void skip_to_item() {
    while (true) {
      skip_spaces();
      if (peek() == '#') {
        skip_line();
      } else if (peek() == '\n' || peek() == '\r') {
        ++position_;
      } else {
        return;
      }
    }
  }

  bool skip_blank_lines() {
    skip_to_item();
    return position_ < text_.size();
  }

  void end_of_line() {
    skip_spaces();
    if (!at_line_end()) fail(here(), "expected the end of the line, found " + found());
    skip_line();
  }

  std::string found() const {
    if (position_ >= text_.size()) return "the end of the text";
    if (peek() == '\n' || peek() == '\r') return "the end of the line";
    if (peek() == '#') return "a comment";
    size_t end = position_ + 1;
    if (is_word_character(peek()))
      while (end < text_.size() && is_word_character(text_[end]) && end - position_ < 40) ++end;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return "'" + text_.substr(position_, end - position_) + "'";
  }

  ir::Place here() const { return lines_.place(file_, position_, position_ + 1); }
  ir::Place span(size_t begin) const { return lines_.place(file_, begin, position_); }

  [[noreturn]] void fail(ir::Place place, std::string message, std::string note = {}) {
    ir::Diagnostic& error = diagnostics_.error(std::move(place), std::move(message));
    if (!note.empty()) error.notes.push_back(std::move(note));
    throw Unreadable();
  }

  [[noreturn]] void fail_twice(const KeyPart& name, const Tree& first) {
    fail(name.place, "'" + name.name + "' is set a second time", "it was set first at " + first.key.text());
  }

  bool check_characters() {
    size_t at = 0;
    const std::string problem = find_bad_character(text_, at);
    if (problem.empty()) return true;
    diagnostics_.error(lines_.place(file_, at, at + 1), problem);
    return false;
  }

  std::shared_ptr<const ir::SourceFile> file_;
  const std::string& text_;
  LineIndex lines_;
  ir::Diagnostics& diagnostics_;
  Scan scan_;
  Tree* table_ = nullptr;  // that the last header opened
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

Scan scan_toml(const std::shared_ptr<const ir::SourceFile>& file, ir::Diagnostics& diagnostics) {
  return Scanner(file, diagnostics).run();
}

}  // namespace tfc::frontend
