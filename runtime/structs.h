// The caller's structs begin with their size: older ones are filled up with zeros, newer ones are accepted
// while what this library does not know is zero.
#pragma once

#include <string.h>

#include "runtime/message.h"

namespace tc {

template <class Struct>
tc_status read_struct(const char* name, const Struct* given, Struct& copy, Message& message) {
  memset(&copy, 0, sizeof copy);
  if (!given) return message.fail(TC_E_ARGUMENT, "%s is NULL", name);
  const size_t size = given->size;
  if (size < sizeof(size_t)) {
    return message.fail(TC_E_ARGUMENT, "%s.size is %zu, expected %zu", name, size, sizeof copy);
  }
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof copy; i < size; ++i) {
    if (bytes[i]) {
      return message.fail(
          TC_E_ARGUMENT,
          "%s.size is %zu and has members set that this library does not know (it knows %zu bytes)", name,
          size, sizeof copy);
    }
  }
  memcpy(&copy, given, size < sizeof copy ? size : sizeof copy);
  copy.size = sizeof copy;
  return TC_OK;
}

/// Fills the caller's struct as far as it goes; `size` stays the caller's.
template <class Struct>
tc_status write_struct(Struct* target, Struct values) {
  if (!target || target->size < sizeof(size_t)) return TC_E_ARGUMENT;
  const size_t size = target->size < sizeof values ? target->size : sizeof values;
  values.size = target->size;
  memcpy(target, &values, size);
  return TC_OK;
}

}  // namespace tc
