#include "tools/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>

#include "llvm/Support/raw_ostream.h"

namespace tfc::tools {
namespace {

namespace fs = std::filesystem;

std::string joined_path(const std::string& folder, const std::string& name) {
  return folder == "." ? name : (fs::path(folder) / name).string();
}

struct PlacedFile {
  std::string path;
  const std::string& bytes;
  bool executable = false;
};

// A file on its way to its place. Until it is kept, whatever stood there before can come back: what is not
// kept leaves nothing of its own and restores that.
class PartialFile {
 public:
  PartialFile(const PlacedFile& file, int number) : file_(file), special_(is_written_through(file.path)) {
    const fs::path path(file.path);
    const std::string unique =
        "." + path.filename().string() + "." + std::to_string(getpid()) + "." + std::to_string(number);
    temporary_ = (path.parent_path() / unique).string();
    older_ = temporary_ + "~";
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (there_) unlink(temporary_.c_str());
    if (replaced_ && !has_older_) unlink(file_.path.c_str());
    if (has_older_ && !kept_) std::rename(older_.c_str(), file_.path.c_str());
    if (has_older_) unlink(older_.c_str());  // still there where it was kept, or a second name of what never moved
  }

  bool writes_through() const { return special_; }

  bool write(std::string& error) {
    if (special_) return true;
    there_ = true;
    if (!write_to(temporary_, error)) return false;
    std::error_code ignored;
    if (file_.executable) {
      fs::permissions(temporary_, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, ignored);
    }
    return true;
  }

  bool put_in_place(std::string& error) {
    if (special_) return write_to(file_.path, error);
    if (!save_older(error)) return false;
    if (std::rename(temporary_.c_str(), file_.path.c_str()) != 0) return failed(std::strerror(errno), error);
    there_ = false;
    replaced_ = true;
    return true;
  }

  void keep() { kept_ = true, replaced_ = false; }

 private:
  // A second name for what stands there, so that it is never missing; another name where a file system has no links.
  bool save_older(std::string& error) {
    has_older_ = link(file_.path.c_str(), older_.c_str()) == 0 ||
                 (errno != ENOENT && std::rename(file_.path.c_str(), older_.c_str()) == 0);
    return has_older_ || errno == ENOENT || failed(std::strerror(errno), error);
  }
  bool write_to(const std::string& path, std::string& error) const {
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code);
    if (code) return failed(code.message(), error);
    stream << file_.bytes;
    stream.close();
    if (!stream.has_error()) return true;
    const std::string why = stream.error().message();
    stream.clear_error();
    return failed(why, error);
  }
  bool failed(const std::string& why, std::string& error) const {
    error = "cannot write '" + file_.path + "': " + why;
    return false;
  }
  PlacedFile file_;
  std::string temporary_, older_;
  bool special_ = false, there_ = false, has_older_ = false, replaced_ = false, kept_ = false;
};

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

bool check_places(const std::vector<PlacedFile>& files, const std::vector<std::string>& inputs,
                  std::string& error) {
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    std::string why;
    for (const std::string& input : inputs) {
      if (is_same_file(path, input)) why = "it is an input; choose another place with -o";
    }
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) why = "it is a folder";
    for (size_t other = 0; other < i; ++other) {
      const bool same = fs::path(path).lexically_normal() == fs::path(files[other].path).lexically_normal();
      if (same) why = "two outputs would go there";
    }
    if (why.empty()) continue;
    error = "cannot write '" + path + "': " + why;
    return false;
  }
  return true;
}

bool print(const std::vector<Output>& outputs, std::string& error) {
  for (const Output& output : outputs) llvm::outs() << output.bytes;
  llvm::outs().flush();
  if (!llvm::outs().has_error()) return true;
  error = "cannot write to standard output: " + llvm::outs().error().message();
  llvm::outs().clear_error();
  return false;
}

// A folder with those above it that are not there either; they go again unless they are kept.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(path) {
    std::error_code code;
    for (fs::path at = fs::path(path).lexically_normal(); !at.empty() && !fs::exists(at, code);
         at = at.parent_path()) {
      if (at.has_filename()) made_.push_back(at);
    }
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    for (const fs::path& folder : made_) fs::remove(folder, ignored);
  }
  bool make(std::string& error) const {
    std::error_code code;
    fs::create_directories(path_, code);
    if (!code) return true;
    error = "cannot make the folder '" + path_ + "': " + code.message();
    return false;
  }
  void keep() { made_.clear(); }

 private:
  std::string path_;
  std::vector<fs::path> made_;  // the innermost first
};

}  // namespace

bool is_written_through(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return false;
  const fs::path folder = fs::absolute(path, ignored).parent_path();
  const bool is_open_file = fs::read_symlink(path, ignored).string().starts_with("/proc/") ||
                            fs::canonical(folder, ignored).string().starts_with("/proc/");
  return is_open_file || !fs::is_regular_file(path, ignored);
}

std::string Destination::path_of(const Output& output) const {
  return kind == Kind::File ? path : joined_path(path, output.file_name);
}

Destination destination_of(const Options& options, size_t outputs) {
  const std::string& path = options.output;
  if (path == "-") return {Destination::Kind::StandardOutput, path};
  const bool is_folder = fs::is_directory(path) || path.ends_with('/') || !options.output_given;
  if (outputs == 1 && !is_folder) return {Destination::Kind::File, path};
  return {Destination::Kind::Folder, path};
}

bool write_outputs(const std::vector<Output>& outputs, const Destination& destination, const Depfile& depfile,
                   const std::vector<std::string>& inputs, std::string& error) {
  const bool prints = destination.kind == Destination::Kind::StandardOutput;
  std::vector<PlacedFile> places;
  for (const Output& output : outputs) {
    if (!prints) places.push_back({destination.path_of(output), output.bytes, output.executable});
  }
  if (!depfile.path.empty()) places.push_back({depfile.path, depfile.rule});
  if (!check_places(places, inputs, error)) return false;
  NewFolder folder(destination.kind == Destination::Kind::Folder ? destination.path : ".");
  if (!folder.make(error)) return false;
  std::deque<PartialFile> files;
  for (const PlacedFile& place : places) {
    files.emplace_back(place, static_cast<int>(files.size()));
    if (!files.back().write(error)) return false;
  }
  if (prints && !print(outputs, error)) return false;
  for (const bool special : {false, true}) {  // these last: what was written into a device does not come back
    for (PartialFile& file : files) {
      if (file.writes_through() == special && !file.put_in_place(error)) return false;
    }
  }
  for (PartialFile& file : files) file.keep();
  folder.keep();
  return true;
}

std::string depfile_text(const std::string& target, const std::vector<std::string>& read) {
  const auto escaped = [](const std::string& path) {
    std::string text;
    for (const char c : path)
      text += c == ' ' || c == '#' ? std::string("\\") + c : c == '$' ? "$$" : std::string(1, c);
    return text;
  };
  std::string text = escaped(target) + ":";
  for (const std::string& file : read) text += " \\\n  " + escaped(file);
  return text + "\n";
}

}  // namespace tfc::tools
