#include "runtime/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

namespace tc {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kWorthHugePages = 2 * kHugePage;

void* from_c_library(int64_t bytes) {
  const bool huge = bytes >= kWorthHugePages;
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(huge ? kHugePage : kAlignment),
                     static_cast<size_t>(bytes)) != 0) {
    return nullptr;
  }
  // Only advice: it costs nothing where the system has no huge pages.
  if (huge) madvise(memory, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
  return memory;
}

}  // namespace

void Allocator::configure(const tc_options& options) {
  alloc_ = options.alloc;
  release_ = options.release;
  user_ = options.user;
  limit_ =
      options.memory_limit > static_cast<size_t>(kMost) ? kMost : static_cast<int64_t>(options.memory_limit);
}

void* Allocator::obtain(int64_t bytes) {
  if (!alloc_) return from_c_library(bytes);
  void* memory = alloc_(user_, static_cast<size_t>(bytes), static_cast<size_t>(kAlignment));
  if (memory && reinterpret_cast<uintptr_t>(memory) % kAlignment != 0) {
    release_(user_, memory);
    return nullptr;
  }
  return memory;
}

tc_status Allocator::allocate(Block& block, int64_t bytes, const char* purpose, Message& message) {
  bytes = align_up(bytes > 0 ? bytes : 1);
  if (limit_ > 0 && bytes > limit_ - used_) {
    return message.fail(TC_E_MEMORY, "%s needs %lld bytes, memory_limit leaves %lld of %lld", purpose,
                        static_cast<long long>(bytes), static_cast<long long>(limit_ - used_),
                        static_cast<long long>(limit_));
  }
  void* memory = bytes == kMost ? nullptr : obtain(bytes);
  if (!memory) {
    return message.fail(TC_E_MEMORY, "no memory for %s: %lld bytes", purpose, static_cast<long long>(bytes));
  }
  used_ += bytes;
  block = {static_cast<char*>(memory), bytes};
  return TC_OK;
}

void Allocator::release(Block& block) {
  if (!block.data) return;
  if (release_) {
    release_(user_, block.data);
  } else {
    free(block.data);
  }
  used_ -= block.bytes;
  block = {};
}

tc_status Allocator::grow(Block& block, int64_t bytes, const char* purpose, Message& message) {
  if (block.data && block.bytes >= bytes) return TC_OK;
  Block larger;
  const tc_status status = allocate(larger, bytes, purpose, message);
  if (status != TC_OK) return status;
  release(block);
  block = larger;
  return TC_OK;
}

}  // namespace tc
