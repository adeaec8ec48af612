// What every kernel that drops elements is told.
#pragma once

#include <optional>

#include "passes/lower/lowering.h"

namespace tfc::passes {

/// The probability is a setting of the kernel; keys and the place's number are arguments.
struct DropoutCall {
  double p = 0;
  ir::Arg keys, place;
};

/// Of a node with attributes p and place, and these keys.
DropoutCall dropout_call(Lowering& l, const ir::Attributes& attributes, ir::Value keys);

/// The setting `key`, and the two arguments after those that there are; nothing where there is no call.
void add_dropout(ir::Attributes& attributes, std::vector<ir::Arg>& args, const char* key,
                 const std::optional<DropoutCall>& call);

}  // namespace tfc::passes
