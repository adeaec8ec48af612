#include "tools/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "llvm/Support/raw_ostream.h"

namespace tfc::tools {
namespace {

namespace fs = std::filesystem;

std::string joined_path(const std::string& folder, const std::string& name) {
  return folder == "." ? name : (fs::path(folder) / name).string();
}

// A file under construction; removes itself unless it was renamed into place.
class PartialFile {
 public:
  PartialFile(std::string final_path, int number) : final_(std::move(final_path)) {
    const fs::path path(final_);
    const std::string unique =
        "." + path.filename().string() + "." + std::to_string(getpid()) + "." + std::to_string(number);
    temporary_ = (path.parent_path() / unique).string();
  }
  PartialFile(PartialFile&& other) noexcept
      : final_(std::move(other.final_)),
        temporary_(std::move(other.temporary_)),
        there_(std::exchange(other.there_, false)) {}
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (there_) unlink(temporary_.c_str());
  }

  bool write(const Output& output, std::string& error) {
    std::error_code code;
    llvm::raw_fd_ostream stream(temporary_, code);
    if (code) return failed(code.message(), error);
    there_ = true;
    stream << output.bytes;
    stream.close();
    if (stream.has_error()) {
      const std::string why = stream.error().message();
      stream.clear_error();
      return failed(why, error);
    }
    if (output.executable) {
      fs::permissions(temporary_, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, code);
    }
    return true;
  }

  bool rename(std::string& error) {
    if (std::rename(temporary_.c_str(), final_.c_str()) != 0) return failed(std::strerror(errno), error);
    there_ = false;
    return true;
  }

 private:
  bool failed(const std::string& why, std::string& error) const {
    error = "cannot write '" + final_ + "': " + why;
    return false;
  }
  std::string final_, temporary_;
  bool there_ = false;
};

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

bool check_places(const std::vector<Output>& outputs, const Destination& destination,
                  const std::string& input, std::string& error) {
  for (const Output& output : outputs) {
    const std::string path = destination.path_of(output);
    if (is_same_file(path, input)) {
      error = "cannot write '" + path + "': it is the input; choose another place with -o";
      return false;
    }
    if (fs::is_directory(path)) {
      error = "cannot write '" + path + "': it is a folder";
      return false;
    }
  }
  return true;
}

}  // namespace

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

bool write_outputs(const std::vector<Output>& outputs, const Destination& destination,
                   const std::string& input, std::string& error) {
  if (destination.kind == Destination::Kind::StandardOutput) {
    for (const Output& output : outputs) llvm::outs() << output.bytes;
    llvm::outs().flush();
    if (!llvm::outs().has_error()) return true;
    error = "cannot write to standard output: " + llvm::outs().error().message();
    llvm::outs().clear_error();
    return false;
  }
  if (!check_places(outputs, destination, input, error)) return false;
  std::error_code code;
  const bool made_folder =
      destination.kind == Destination::Kind::Folder && fs::create_directories(destination.path, code);
  if (code) {
    error = "cannot make the folder '" + destination.path + "': " + code.message();
    return false;
  }
  bool ok = true;
  {
    std::vector<PartialFile> files;
    for (const Output& output : outputs) {
      files.emplace_back(destination.path_of(output), static_cast<int>(files.size()));
      ok = ok && files.back().write(output, error);
    }
    for (PartialFile& file : files) ok = ok && file.rename(error);
  }
  if (!ok && made_folder) fs::remove(destination.path, code);
  return ok;
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
