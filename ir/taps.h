// Outputs that show a value from inside the model, as [debug] taps asks: "tap:NAME", and "tap_grad:NAME" what the
// backward found as its gradient. The plan keeps them in the workspace, to the end of the entry.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace tfc::ir {

inline constexpr std::string_view kTap = "tap:", kTapGradient = "tap_grad:";

inline bool is_tap_gradient(std::string_view output) { return output.starts_with(kTapGradient); }
inline bool is_tap(std::string_view output) { return output.starts_with(kTap) || is_tap_gradient(output); }
/// What such an output shows: NAME.
inline std::string_view tapped_name(std::string_view output) { return output.substr(output.find(':') + 1); }

/// Names of all that some entry shows, each once, in the order of the entries: a library numbers its taps so.
std::vector<std::string> tapped_names(const Module& module);

}  // namespace tfc::ir
