// The plan as constant data of the generated module: the structs of runtime/plan.h, filled in.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/target.h"
#include "ir/module.h"

namespace llvm {
class GlobalVariable;
class Module;
}  // namespace llvm

namespace tfc::codegen {

/// Emits every kernel that the plans name, once each, and the global `tc_model_desc` that describes the model.
/// `planned` is in phase planned. `architecture`: see CompileRequest.
llvm::GlobalVariable* emit_tables(llvm::Module& module, const ir::Module& planned, const Target& target,
                                  uint64_t build_id, const std::string& architecture);

}  // namespace tfc::codegen
