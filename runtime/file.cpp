#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tc {

namespace {

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

constexpr int64_t kPage = 4096;

const char* file_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

tc_status failure(Message& message, const char* what, const char* path, int error) {
  const tc_status status =
      message.fail(TC_E_FILE, "cannot %s '%s': %s", what, PathText(path).text, strerror(error));
  errno = error;  // for callers that make an exception of it
  return status;
}

tc_status not_regular(Message& message, const char* what, const char* path, mode_t mode) {
  const tc_status status = message.fail(TC_E_FILE, "cannot %s '%s': it is %s, not a file", what,
                                        PathText(path).text, file_kind(mode));
  errno = S_ISDIR(mode) ? EISDIR : EINVAL;
  return status;
}

/// Grows an interval to whole pages.
void to_pages(int64_t& offset, int64_t& bytes) {
  const int64_t before = offset % kPage;
  offset -= before;
  bytes += before;
}

}  // namespace

PathText::PathText(const char* path) {
  const size_t length = strlen(path);
  if (length < sizeof text) {
    memcpy(text, path, length + 1);
  } else {
    snprintf(text, sizeof text, "...%s", path + length - (sizeof text - 4));
  }
}

// -- reading
// ----------------------------------------------------------------------------------------------------------

tc_status MappedFile::open(const char* path, Message& message) {
  // Opening a pipe would wait for a writer.
  descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0 || fstat(descriptor_, &opened_) != 0) return failure(message, "read", path, errno);
  if (!S_ISREG(opened_.st_mode)) return not_regular(message, "read", path, opened_.st_mode);
  bytes_ = opened_.st_size;
  if (bytes_ == 0) return TC_OK;  // nothing to map
  void* memory = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (memory == MAP_FAILED) return failure(message, "map", path, errno);
  data_ = static_cast<char*>(memory);
  return TC_OK;
}

MappedFile::~MappedFile() {
  const int error = errno;
  if (data_) munmap(data_, static_cast<size_t>(bytes_));
  if (descriptor_ >= 0) close(descriptor_);
  errno = error;
}

int MappedFile::prefetch(int64_t offset, int64_t bytes) const {
  to_pages(offset, bytes);
  if (bytes == 0 || madvise(data_ + offset, static_cast<size_t>(bytes), MADV_POPULATE_READ) == 0) return 0;
  if (errno != EINVAL) return errno == EFAULT ? EIO : errno;
  // An older kernel. What can be read into a buffer is in memory then.
  char buffer[4 * kPage];
  while (bytes > 0) {
    const int64_t part =
        bytes < static_cast<int64_t>(sizeof buffer) ? bytes : static_cast<int64_t>(sizeof buffer);
    const ssize_t got = pread(descriptor_, buffer, static_cast<size_t>(part), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EIO;
    offset += got;
    bytes -= got;
  }
  return 0;
}

void MappedFile::release(int64_t offset, int64_t bytes) const {
  to_pages(offset, bytes);
  if (bytes > 0) madvise(data_ + offset, static_cast<size_t>(bytes), MADV_DONTNEED);
}

bool MappedFile::unchanged() const {
  struct stat now;
  return fstat(descriptor_, &now) == 0 && now.st_size == opened_.st_size &&
         now.st_mtim.tv_sec == opened_.st_mtim.tv_sec && now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
}

// -- writing
// ----------------------------------------------------------------------------------------------------------

tc_status ReplacingFile::failed(Message& message, const char* what, int error) {
  return failure(message, what, target_, error);
}

tc_status ReplacingFile::find_target(const char* path, Message& message) {
  if (strlen(path) >= sizeof target_) return failure(message, "write", path, ENAMETOOLONG);
  strcpy(target_, path);
  struct stat there;
  if (lstat(path, &there) != 0) return errno == ENOENT ? TC_OK : failed(message, "write", errno);
  if (S_ISLNK(there.st_mode)) {
    if (stat(path, &there) != 0) return failed(message, "write", errno);
    if (!realpath(path, target_)) return failure(message, "write", path, errno);
  }
  if (!S_ISREG(there.st_mode)) return not_regular(message, "write", path, there.st_mode);
  if (access(path, W_OK) != 0) return failed(message, "write", errno);
  replaces_ = true;
  mode_ = there.st_mode & 0777;
  return TC_OK;
}

bool ReplacingFile::create() {
  char copy[PATH_MAX];
  strcpy(copy, target_);
  const char* const folder = dirname(copy);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int length = snprintf(temporary_, sizeof temporary_, "%s/.weights-%ld-%d.tmp", folder,
                                static_cast<long>(getpid()), attempt);
    if (length < 0 || length >= static_cast<int>(sizeof temporary_)) {
      errno = ENAMETOOLONG;
      break;
    }
    descriptor_ = ::open(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0 || errno != EEXIST) break;
  }
  if (descriptor_ < 0) temporary_[0] = 0;
  return descriptor_ >= 0;
}

tc_status ReplacingFile::open(const char* path, Message& message) {
  const tc_status status = find_target(path, message);
  if (status != TC_OK) return status;
  if (!create()) return failed(message, "write", errno);
  if (replaces_ && fchmod(descriptor_, mode_) != 0) return failed(message, "write", errno);
  return TC_OK;
}

void ReplacingFile::write_out(const char* data, int64_t bytes) {
  while (bytes > 0 && error_ == 0) {
    const ssize_t done = ::write(descriptor_, data, static_cast<size_t>(bytes));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      error_ = done < 0 ? errno : ENOSPC;
      return;
    }
    data += done;
    bytes -= done;
  }
}

void ReplacingFile::flush() {
  write_out(buffer_, used_);
  used_ = 0;
}

void ReplacingFile::write(const void* data, int64_t bytes) {
  if (used_ + bytes > kBuffer) flush();
  if (bytes > kBuffer) {
    write_out(static_cast<const char*>(data), bytes);
  } else {
    memcpy(buffer_ + used_, data, static_cast<size_t>(bytes));
    used_ += bytes;
  }
}

tc_status ReplacingFile::commit(Message& message) {
  flush();
  if (error_ == 0 && fsync(descriptor_) != 0) error_ = errno;
  if (close(descriptor_) != 0 && error_ == 0) error_ = errno;
  descriptor_ = -1;
  if (error_ == 0 && rename(temporary_, target_) != 0) error_ = errno;
  if (error_ != 0) return failed(message, "write", error_);
  // The folder remembers the new name only once it is on the disk too; where that cannot be asked for, it
  // will be.
  char copy[PATH_MAX];
  strcpy(copy, temporary_);
  temporary_[0] = 0;
  const int folder = ::open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return TC_OK;
}

ReplacingFile::~ReplacingFile() {
  const int error = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (temporary_[0]) unlink(temporary_);
  errno = error;
}

}  // namespace tc
