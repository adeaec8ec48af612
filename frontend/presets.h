// Descriptions that ship with the compiler, for `extends`: the files of frontend/presets, by their stems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace tfc::frontend {

/// A line of the table that the build writes (cmake/presets.cmake).
struct EmbeddedPreset {
  const char* name;
  const char* text;
  const uint64_t* size;
};
extern const EmbeddedPreset kPresets[];
extern const size_t kPresetCount;

/// Null where there is none of that name. Messages call it "preset NAME".
std::shared_ptr<const ir::SourceFile> find_preset(const std::string& name);
bool is_preset(const ir::SourceFile& file);

/// In alphabetical order.
std::vector<std::string> preset_names();

}  // namespace tfc::frontend
