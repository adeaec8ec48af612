# frontend/presets/NAME.toml, linked into the frontend, and the table by which frontend/presets.cpp finds them.
file(GLOB presets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/frontend/presets/*.toml)
list(SORT presets)
set(preset_declarations "")
set(preset_rows "")
foreach(preset ${presets})
  get_filename_component(name ${preset} NAME_WLE)
  string(MAKE_C_IDENTIFIER "tfc_preset_${name}" symbol)
  tfc_embed(tfc_frontend ${symbol} ${preset})
  string(APPEND preset_declarations "extern const char ${symbol}[];\nextern const uint64_t ${symbol}_size;\n")
  string(APPEND preset_rows "    {\"${name}\", ${symbol}, &${symbol}_size},\n")
endforeach()
set(table ${CMAKE_BINARY_DIR}/embedded/preset_table.cpp)
file(CONFIGURE OUTPUT ${table} CONTENT [[
#include "frontend/presets.h"

extern "C" {
@preset_declarations@}

namespace tfc::frontend {

const EmbeddedPreset kPresets[] = {
@preset_rows@};
const size_t kPresetCount = sizeof kPresets / sizeof kPresets[0];

}  // namespace tfc::frontend
]] @ONLY)
target_sources(tfc_frontend PRIVATE ${table})
