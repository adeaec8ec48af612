#include "runtime/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace tc {

tc_status Message::fail(tc_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return status;
}

void Message::copy_to(char* buffer, size_t size) const {
  if (!buffer || size == 0) return;
  const size_t length = strnlen(text, size - 1);
  memcpy(buffer, text, length);
  buffer[length] = 0;
}

}  // namespace tc
