// Outputs are gathered in memory and written at the end, all or none.
#pragma once

#include <string>
#include <vector>

#include "tools/options.h"

namespace tfc::tools {

struct Output {
  std::string file_name;  // "libgpt2.so", without a folder
  std::string bytes;
  bool executable = false;
};

/// Where outputs go: into a folder, into one file, or to standard output.
struct Destination {
  enum class Kind : uint8_t { Folder, File, StandardOutput } kind = Kind::Folder;
  std::string path;
  std::string path_of(const Output& output) const;
};

/// -o PATH: "-" is standard output; one output to a path that is not a folder is that file.
Destination destination_of(const Options& options, size_t outputs);

/// Whether something stands there that is written into and not replaced, which would take it away from
/// everybody: a device, a pipe, a name of an open file (/dev/stdout, /dev/fd/3).
bool is_written_through(const std::string& path);

/// The rule that --depfile asks for; without a path there is none.
struct Depfile {
  std::string path, rule;
};

/// Writes all outputs and the depfile: to temporary files beside their places first, renamed only when every
/// one is complete. On failure, of a renaming too, nothing is left behind, every older file is as it was, and
/// `error` says which path and why. `inputs` are never overwritten. Nor is what `is_written_through`
/// replaced.
bool write_outputs(const std::vector<Output>& outputs, const Destination& destination, const Depfile& depfile,
                   const std::vector<std::string>& inputs, std::string& error);

/// "first: read1 read2", a Makefile rule.
std::string depfile_text(const std::string& target, const std::vector<std::string>& read);

}  // namespace tfc::tools
