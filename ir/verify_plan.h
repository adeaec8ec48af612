// What must hold of a plan; part of the verifier.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace tfc::ir {

/// Everything wrong with the plan, in words: numbers out of range, loops that do not match, buffers that
/// share a slot while both live. Buffers without a slot yet (-1) are those of a plan before plan-memory.
std::vector<std::string> plan_faults(const Plan& plan, const Module& module);

}  // namespace tfc::ir
