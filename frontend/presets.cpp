#include "frontend/presets.h"

#include <algorithm>

namespace tfc::frontend {
namespace {

const std::string kPrefix = "preset ";

}  // namespace

std::shared_ptr<const ir::SourceFile> find_preset(const std::string& name) {
  for (size_t i = 0; i < kPresetCount; ++i) {
    const EmbeddedPreset& preset = kPresets[i];
    if (name == preset.name) {
      return std::make_shared<ir::SourceFile>(
          ir::SourceFile{kPrefix + name, std::string(preset.text, static_cast<size_t>(*preset.size))});
    }
  }
  return nullptr;
}

bool is_preset(const ir::SourceFile& file) { return file.name.starts_with(kPrefix); }

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kPresetCount; ++i) names.emplace_back(kPresets[i].name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tfc::frontend
