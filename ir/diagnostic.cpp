#include "ir/diagnostic.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace tfc::ir {
namespace {

std::string_view severity_word(const Diagnostic& diagnostic, bool warnings_are_errors) {
  switch (diagnostic.severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return warnings_are_errors ? "error" : "warning";
    case Severity::Remark:
      return "remark";
  }
  return "error";
}

std::string_view file_name(const Place& place) {
  return place.file ? std::string_view(place.file->name) : std::string_view();
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // of UTF-8

/// The source line, and below it a caret under the place's first column with tildes to its last.
std::string excerpt(const Place& place) {
  const std::string line(place.file->line(place.line));
  std::string marks;
  const size_t start = static_cast<size_t>(std::max(place.column, 1) - 1);
  const size_t end = std::min(line.size(), start + static_cast<size_t>(std::max(place.length, 1)));
  for (size_t i = 0; i < start && i < line.size(); ++i)
    if (!continues_character(line[i])) marks += line[i] == '\t' ? '\t' : ' ';
  marks += '^';
  for (size_t i = start + 1; i < end; ++i)
    if (!continues_character(line[i])) marks += '~';
  return line + '\n' + marks + '\n';
}

/// By file and line; otherwise as they came. Errors that say the same of the same place are said once.
std::vector<const Diagnostic*> in_order(const std::vector<Diagnostic>& list, bool remarks_wanted) {
  std::vector<const Diagnostic*> order;
  for (const Diagnostic& diagnostic : list)
    if (diagnostic.severity != Severity::Remark || remarks_wanted) order.push_back(&diagnostic);
  std::stable_sort(order.begin(), order.end(), [](const Diagnostic* a, const Diagnostic* b) {
    const std::string_view left = file_name(a->place), right = file_name(b->place);
    if (left != right) return left < right;
    return a->place.line < b->place.line;
  });
  std::set<std::tuple<std::string_view, int, int, std::string_view>> said;
  std::erase_if(order, [&](const Diagnostic* d) {
    return d->severity != Severity::Remark &&
           !said.emplace(file_name(d->place), d->place.line, d->place.column, d->message).second;
  });
  return order;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  // Damerau's distance in its restricted form: two letters in the wrong order are one mistake.
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view SourceFile::line(int number) const {
  std::string_view rest = text;
  for (int i = 1; i < number; ++i) {
    const size_t newline = rest.find('\n');
    if (newline == std::string_view::npos) return {};
    rest.remove_prefix(newline + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

std::string Place::text() const {
  if (!file) return "";
  if (line <= 0) return file->name;
  return file->name + ':' + std::to_string(line) + ':' + std::to_string(column);
}

Diagnostic& Diagnostics::error(Place place, std::string message) {
  return list_.emplace_back(Diagnostic{Severity::Error, "", std::move(place), std::move(message), {}});
}

Diagnostic& Diagnostics::warning(std::string_view name, Place place, std::string message) {
  Diagnostic made{Severity::Warning, std::string(name), std::move(place), std::move(message), {}};
  if (std::find(disabled_warnings.begin(), disabled_warnings.end(), name) != disabled_warnings.end())
    return dropped_ = std::move(made);
  return list_.emplace_back(std::move(made));
}

Diagnostic& Diagnostics::remark(std::string_view pass, Place place, std::string message) {
  return list_.emplace_back(
      Diagnostic{Severity::Remark, std::string(pass), std::move(place), std::move(message), {}});
}

int Diagnostics::errors() const {
  return static_cast<int>(std::count_if(list_.begin(), list_.end(), [this](const Diagnostic& d) {
    return d.severity == Severity::Error || (d.severity == Severity::Warning && warnings_are_errors);
  }));
}

std::string Diagnostics::text() const {
  std::string text;
  for (const Diagnostic* d : in_order(list_, remarks_wanted)) {
    const std::string place = d->place.text();
    text += place.empty() ? "transformerc" : place;
    text += ": ";
    text += severity_word(*d, warnings_are_errors);
    text += ": " + d->message;
    if (d->severity == Severity::Warning)
      text += (warnings_are_errors ? " [-Werror,-W" : " [-W") + d->name + "]";
    if (d->severity == Severity::Remark) text += " [" + d->name + "]";
    text += '\n';
    if (d->place.known() && !d->place.file->text.empty()) text += excerpt(d->place);
    for (const std::string& note : d->notes) text += "note: " + note + '\n';
  }
  return text;
}

std::string Diagnostics::json() const {
  llvm::json::Array list;
  for (const Diagnostic* d : in_order(list_, remarks_wanted)) {
    llvm::json::Array notes;
    for (const std::string& note : d->notes) notes.push_back(llvm::json::fixUTF8(note));
    list.push_back(llvm::json::Object{
        {"severity", std::string(severity_word(*d, warnings_are_errors))},
        {"file", llvm::json::fixUTF8(std::string(file_name(d->place)))},
        {"line", d->place.line},
        {"column", d->place.column},
        {"message", llvm::json::fixUTF8(d->message)},
        {"notes", std::move(notes)},
        {"name", d->name},
    });
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::formatv("{0:2}", llvm::json::Value(std::move(list))) << '\n';
  stream.flush();
  return text;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  // A third of the letters may be wrong: "d_modle" is d_model, "foo" is nothing.
  const size_t limit = std::max<size_t>(1, name.size() / 3);
  std::string best;
  size_t least = limit + 1;
  for (const std::string& candidate : known) {
    const size_t longer = std::max(candidate.size(), name.size()),
                 shorter = std::min(candidate.size(), name.size());
    if (longer - shorter >= least) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < least && distance < longer) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tfc::ir
