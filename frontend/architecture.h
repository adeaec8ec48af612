// What two models must agree on for weights of one to mean the same in the other, besides names and shapes.
#pragma once

#include <string>
#include <string_view>

namespace tfc::frontend {

/// Lines "key = value", sorted, of a description's resolved text: whatever changes the function that
/// parameters make. Left out are names, how parameters begin, what trains, dropout, losses, optional inputs
/// and limits, and whatever is off (0, false, "none"), so that a key of a later version is no difference
/// where it is not used. Settings of layers have one line for the whole stack, whatever blocks they were
/// written as: `ffn.d_ff = 64 in layers 0-2, 96 in layer 3`. `auto_placement`: what norm placement "auto"
/// means for a stack of that depth.
std::string architecture(const std::string& resolved, std::string_view (*auto_placement)(int64_t depth));

}  // namespace tfc::frontend
