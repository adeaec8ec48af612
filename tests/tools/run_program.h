// Runs the program under test and collects what it says.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tfc::test {

struct Result {
  int status = -1;
  std::string out, err;
};

/// In `folder`, with these arguments.
Result run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

/// A fresh folder, removed with its content at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  std::vector<std::string> names() const;  // of all files, hidden ones too, sorted
  Result run(const std::vector<std::string>& arguments) const { return run_program(arguments, path_); }

 private:
  std::filesystem::path path_;
};

/// A small decoder, of which every part is there.
inline const char* const kTinyDecoder = R"([model]
kind = "decoder"
d_model = 16
layers = 2
heads = 2
vocab = 11
max_seq = 12
)";

}  // namespace tfc::test
