// Attributes that every function of a generated module carries, so that LLVM uses the whole vector width and nothing
// beyond the target's instruction set.
#pragma once

#include "codegen/target.h"
#include "llvm/IR/Function.h"

namespace tfc::codegen {

void set_function_attributes(llvm::Function& function, const Target& target);

}  // namespace tfc::codegen
