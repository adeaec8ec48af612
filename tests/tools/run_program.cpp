#include "tools/run_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tfc::test {
namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Folder::Folder() {
  std::string pattern = (fs::temp_directory_path() / "tfc-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
}

std::string Folder::read(const std::string& name) const { return text_of(path_ / name); }

std::vector<std::string> Folder::names() const {
  std::vector<std::string> list;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (entry.is_regular_file()) list.push_back(fs::relative(entry.path(), path_).string());
  }
  std::sort(list.begin(), list.end());
  return list;
}

Result run_program(const std::vector<std::string>& arguments, const fs::path& folder) {
  const Folder scratch;
  std::string command = "cd " + quoted(folder.string()) + " && " + quoted(TFC_PROGRAM);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += " >" + quoted((scratch.path() / "out").string()) + " 2>" +
             quoted((scratch.path() / "err").string()) + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, scratch.read("out"), scratch.read("err")};
}

}  // namespace tfc::test
