// LLVM's passes over a generated module, in the order and to the extent that suits hand-shaped kernels.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tfc::codegen {

/// level 0: only what code generation needs. From 1 on: scalar clean-up of every function. Neither the SLP nor the
/// loop vectoriser ever runs: kernels are vectors already, and those passes explode on large straight-line code.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, int level);

}  // namespace tfc::codegen
