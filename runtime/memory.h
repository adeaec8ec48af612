// Blocks of memory through the caller's hooks or the C library, counted against a limit.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/message.h"

namespace tc {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMost = INT64_MAX;

/// Saturating, as all sizes: kMost stands for "beyond any memory".
constexpr int64_t align_up(int64_t bytes) {
  return bytes > kMost - kAlignment ? kMost : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
inline int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}
inline int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? kMost : sum;
}

struct Block {
  char* data = nullptr;
  int64_t bytes = 0;
};

class Allocator {
 public:
  /// Takes hooks and limit from options that were checked.
  void configure(const tc_options& options);
  /// 64-byte aligned, not cleared. A failure says in the message what the memory was for.
  tc_status allocate(Block& block, int64_t bytes, const char* purpose, Message& message);
  void release(Block& block);
  /// Room for `bytes`; the content is lost when the block moves. On failure the block is as it was.
  tc_status grow(Block& block, int64_t bytes, const char* purpose, Message& message);

 private:
  void* obtain(int64_t bytes);

  void* (*alloc_)(void*, size_t, size_t) = nullptr;
  void (*release_)(void*, void*) = nullptr;
  void* user_ = nullptr;
  int64_t limit_ = 0;  // 0: none
  int64_t used_ = 0;
};

}  // namespace tc
