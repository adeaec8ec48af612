#include "frontend/load.h"

#include <filesystem>

#include "frontend/check_keys.h"
#include "frontend/resolve.h"
#include "frontend/sources.h"

namespace tfc::frontend {
namespace {

int count_errors(const ir::Diagnostics& diagnostics) {
  int errors = 0;
  for (const ir::Diagnostic& diagnostic : diagnostics.all())
    errors += diagnostic.severity == ir::Severity::Error;
  return errors;
}

std::string stem_of(const std::string& file_name) {
  return file_name == "<stdin>" ? "model" : std::filesystem::path(file_name).stem().string();
}

}  // namespace

std::optional<Description> load_description(std::shared_ptr<const ir::SourceFile> file,
                                            const std::vector<Override>& overrides,
                                            ir::Diagnostics& diagnostics) {
  const int errors_before = count_errors(diagnostics);
  Sources sources = gather_sources(file, overrides, diagnostics);
  const KeyCheck keys = check_keys(sources.document.root, diagnostics);
  Description description = resolve(sources.document, keys, stem_of(file->name), diagnostics);
  description.files = std::move(sources.files);
  if (count_errors(diagnostics) > errors_before) return std::nullopt;
  return description;
}

std::optional<Description> load_description(const std::string& path, const std::vector<Override>& overrides,
                                            ir::Diagnostics& diagnostics) {
  std::string error;
  const auto file = read_source(path, error);
  if (file) return load_description(file, overrides, diagnostics);
  diagnostics.error({}, error);
  return std::nullopt;
}

}  // namespace tfc::frontend
