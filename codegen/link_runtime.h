// Brings the run time into a generated module and decides what the library shows.
#pragma once

#include <string>

#include "codegen/target.h"

namespace llvm {
class Module;
}

namespace tfc::codegen {

/// Links the run time's bitcode into `module`, which defines `tc_model_desc`. Every run-time function tc_rt_X becomes
/// the library's NAME_X; everything else becomes internal, so that two libraries never clash.
void link_runtime(llvm::Module& module, const std::string& name, const Target& target);

/// Identifies the run time, for the build id.
uint64_t runtime_hash();

}  // namespace tfc::codegen
