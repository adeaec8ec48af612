// Places in the user's files, errors and warnings with source line and caret, and remarks of the passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tfc::ir {

/// A file's text, kept for the carets. `name` is what messages print.
struct SourceFile {
  std::string name;
  std::string text;
  std::string_view line(int number) const;  // 1-based, without the newline; "" past the end
};

/// Where something was written. line 0: nowhere in particular (the message is printed without a source line).
struct Place {
  std::shared_ptr<const SourceFile> file;
  int line = 0;
  int column = 0;  // 1-based, in bytes
  int length = 1;  // how many columns the caret line underlines
  bool known() const { return file != nullptr && line > 0; }
  std::string text() const;  // "model.toml:3:9", "model.toml" without a line, "" unknown
};

enum class Severity : uint8_t { Error, Warning, Remark };

struct Diagnostic {
  Severity severity = Severity::Error;
  // Of a warning (-W[no-]NAME) or of the pass that remarks. Of an error that is not the input's: "usage",
  // "file" (that cannot be read or written), "compiler" (a fault of its own); else "".
  std::string name;
  Place place;
  std::string message;             // lower case, no full stop
  std::vector<std::string> notes;  // further lines, printed after "note: "
};

/// Collects what a run has to say. Printing sorts by file and line, errors of one place once.
class Diagnostics {
 public:
  bool warnings_are_errors = false;            // -Werror
  bool remarks_wanted = false;                 // --remarks
  std::vector<std::string> disabled_warnings;  // -Wno-NAME

  Diagnostic& error(Place place, std::string message);
  Diagnostic& warning(std::string_view name, Place place, std::string message);
  Diagnostic& remark(std::string_view pass, Place place, std::string message);

  int errors() const;  // counts warnings too under -Werror
  bool ok() const { return errors() == 0; }
  const std::vector<Diagnostic>& all() const { return list_; }

  /// file:line:column: error: text / source line / caret / notes. Remarks only when wanted.
  std::string text() const;
  std::string json() const;  // one array of objects: severity, file, line, column, message, notes, name

 private:
  std::vector<Diagnostic> list_;
  Diagnostic dropped_;  // what a disabled warning returns
};

/// The known name nearest to `name` by edit distance, or "" when none is near enough to suggest.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace tfc::ir
