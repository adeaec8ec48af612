// The CPU that kernels are compiled for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostic.h"

namespace llvm {
class TargetMachine;
}

namespace tfc::codegen {

struct Target {
  std::string cpu;        // the level, which bounds the instructions: "x86-64-v4"
  std::string tune;       // LLVM's name of the CPU that code is scheduled for: "znver4"
  std::string requested;  // what --cpu said
  int isa_level = 2;      // x86-64 level (2, 3, 4) that the code needs and model_create checks
  bool fma = false;       // levels 3 and 4: explicit fma; below, llvm.fma would become a libm call
  int vector_bytes = 16;  // 16, 32, 64: width of a hardware vector
  int registers = 16;     // vector registers: 16 or 32

  int lanes_f32() const { return vector_bytes / 4; }
};

/// "native", "x86-64-v2".."-v4", or an LLVM CPU name of level 2 and more. Null with an error otherwise.
std::optional<Target> resolve_target(const std::string& requested, ir::Diagnostics& diagnostics);

/// level 0..3: LLVM's own optimisation level of the code generator.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, int level);

}  // namespace tfc::codegen
