// Telling two architectures apart, line by line.
#include <stdio.h>
#include <string.h>

#include "runtime/weights.h"

namespace tc {

namespace {

struct Text {
  const char* begin;
  size_t length;
};

/// "key = value"
struct Line {
  Text key, value;
};

/// The line that begins at `at`, which then is the next one's start; false at the end.
bool next_line(const char*& at, Line& line) {
  if (!*at) return false;
  const size_t length = strcspn(at, "\n");
  const char* const equals = static_cast<const char*>(memmem(at, length, " = ", 3));
  line.key = {at, equals ? static_cast<size_t>(equals - at) : length};
  line.value =
      equals ? Text{equals + 3, static_cast<size_t>(at + length - equals - 3)} : Text{at + length, 0};
  at += length + (at[length] == '\n');
  return true;
}

bool same(Text a, Text b) { return a.length == b.length && memcmp(a.begin, b.begin, a.length) == 0; }

bool find(const char* text, Text key, Line& line) {
  while (next_line(text, line)) {
    if (same(line.key, key)) return true;
  }
  return false;
}

/// Cut short, and without what cannot be printed: it may come from any file.
struct Short {
  explicit Short(Text from) {
    const size_t length = from.length < kMost ? from.length : kMost;
    for (size_t i = 0; i < length; ++i)
      text[i] = from.begin[i] >= 0x20 && from.begin[i] < 0x7F ? from.begin[i] : '?';
    snprintf(text + length, sizeof text - length, "%s", from.length > kMost ? "..." : "");
  }
  static constexpr size_t kMost = 60;
  char text[kMost + 4];
};

class Differences {
 public:
  void add(Text key, const Text* theirs, const Text* ours) {
    if (++count_ > kMost) return;
    char file[80] = "not set", here[80] = "not set";
    if (theirs) snprintf(file, sizeof file, "%s", Short(*theirs).text);
    if (ours) snprintf(here, sizeof here, "%s", Short(*ours).text);
    used_ += static_cast<size_t>(snprintf(text_ + used_, sizeof text_ - used_,
                                          "%s%s is %s in the file and %s here", used_ ? "; " : "",
                                          Short(key).text, file, here));
  }
  int count() const { return count_; }
  int unsaid() const { return count_ > kMost ? count_ - kMost : 0; }
  const char* text() const { return text_; }

 private:
  static constexpr int kMost = 6;
  int count_ = 0;
  size_t used_ = 0;
  char text_[kMost * 260] = {};
};

}  // namespace

uint64_t architecture_hash(const char* text, size_t length) {
  uint64_t hash = 0xCBF29CE484222325;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001B3;
  return hash;
}

tc_status compare_architectures(const char* theirs, const char* ours, Message& message) {
  Differences differences;
  Line line, other;
  for (const char* at = ours; next_line(at, line);) {
    const bool found = find(theirs, line.key, other);
    if (!found || !same(line.value, other.value))
      differences.add(line.key, found ? &other.value : nullptr, &line.value);
  }
  for (const char* at = theirs; next_line(at, line);) {
    if (!find(ours, line.key, other)) differences.add(line.key, &line.value, nullptr);
  }
  if (differences.count() == 0) return TC_OK;
  char more[40] = "";
  if (differences.unsaid() > 0) snprintf(more, sizeof more, "; and %d more", differences.unsaid());
  return message.fail(TC_E_FORMAT, "it is of another architecture: %s%s (strict=False loads it all the same)",
                      differences.text(), more);
}

}  // namespace tc
