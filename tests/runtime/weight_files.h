// Weight files for the fake decoder: written here byte by byte, not by the code under test.
#pragma once

#include <cstdint>
#include <string>

#include "fake_models.h"

namespace tc::test {

/// A folder of its own, gone in the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Names in it, in order, with spaces between.
  std::string listing() const;

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path);

/// The header of a file of the decoder's three parameters, in their order, as F32.
extern const char* const kHeader;
/// Their numbers: 0.5, 1.5, ...
std::string data();
/// Length, header, data.
std::string weights(const std::string& header, const std::string& data);
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace tc::test
