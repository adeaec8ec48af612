// Files: one that is read through a mapping, and one that appears whole or not at all.
#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>

#include "runtime/message.h"

namespace tc {

/// The end of a path, as messages give it.
struct PathText {
  explicit PathText(const char* path);
  char text[128];
};

/// A regular file, mapped for reading. What was mapped may still be cut off by somebody else, and reading it
/// would then end the process: `prefetch` reads a part first and says so as an error.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  tc_status open(const char* path, Message& message);
  const char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  /// 0, or errno: whether these bytes can be read.
  int prefetch(int64_t offset, int64_t bytes) const;
  /// They were used: their pages may go.
  void release(int64_t offset, int64_t bytes) const;
  /// Is the file still what was opened?
  bool unchanged() const;

 private:
  int descriptor_ = -1;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
  struct stat opened_ = {};
};

/// A new file beside the one at `path`, which takes its place at `commit`; without that it is gone in the
/// end. Its permissions are those of the file that it replaces, else what the umask says.
class ReplacingFile {
 public:
  ReplacingFile() = default;
  ~ReplacingFile();
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;

  tc_status open(const char* path, Message& message);
  /// Through a buffer. The first failure is kept: `commit` tells it.
  void write(const void* data, int64_t bytes);
  tc_status commit(Message& message);

 private:
  tc_status find_target(const char* path, Message& message);
  bool create();
  void write_out(const char* data, int64_t bytes);
  void flush();
  tc_status failed(Message& message, const char* what, int error);

  static constexpr int64_t kBuffer = 1 << 13;

  char target_[PATH_MAX] = {};  // what is replaced: `path`, or where that link leads
  char temporary_[PATH_MAX] = {};
  int descriptor_ = -1;
  int error_ = 0;
  mode_t mode_ = 0;
  bool replaces_ = false;
  int64_t used_ = 0;
  char buffer_[kBuffer];
};

}  // namespace tc
