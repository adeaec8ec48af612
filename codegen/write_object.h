// Machine code and its containers.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostic.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tfc::codegen {

/// ELF object (or assembly text) of the module. The module is used up.
std::string write_object(llvm::Module& module, llvm::TargetMachine& machine, bool assembly);

/// A static library with the one member NAME.o; the same bytes every time.
std::string write_archive(const std::string& object, const std::string& name);

/// A shared object, linked by lld in this process against this process's own libc and libm, so that no linker and no
/// development package are needed. Null with an error where files cannot be written.
std::optional<std::string> write_shared(const std::string& object, const std::string& name,
                                        ir::Diagnostics& diagnostics);

}  // namespace tfc::codegen
