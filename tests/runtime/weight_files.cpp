#include "weight_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace tc::test {

namespace fs = std::filesystem;

Folder::Folder() {
  std::string pattern = (fs::temp_directory_path() / "weights-XXXXXX").string();
  if (mkdtemp(pattern.data())) path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string Folder::listing() const {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.insert(entry.path().filename());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream << bytes;
  ASSERT_TRUE(stream.good()) << path;
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

const char* const kHeader =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"emb\":{\"dtype\":\"F32\",\"shape\":[16,1],\"data_offsets\":[0,64]},"
    "\"bias\":{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[64,128]},"
    "\"frozen\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[128,148]}}";

std::string data() {
  std::string bytes;
  for (int i = 0; i < 37; ++i) {
    const float value = static_cast<float>(i) + 0.5f;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::string weights(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace tc::test
