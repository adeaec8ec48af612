// One sentence about what went wrong, kept by a model or session (or written to the caller's buffer).
#pragma once

#include <stddef.h>

#include "runtime/api.h"

namespace tc {

struct Message {
  char text[2048];

  void clear() { text[0] = 0; }
  /// Writes the sentence and gives the status back, so that a check reads `return message.fail(...)`.
  tc_status fail(tc_status status, const char* format, ...) __attribute__((format(printf, 3, 4)));
  void copy_to(char* buffer, size_t size) const;
};

}  // namespace tc
