// Planned module -> native code: object, archive, shared library, and the texts on the way.
#pragma once

#include <optional>
#include <string>

#include "codegen/target.h"
#include "ir/module.h"

namespace tfc::codegen {

struct CompileRequest {
  int optimisation = 2;  // -O0..-O3
  bool object = false, archive = false, shared = false;
  bool llvm = false;      // as emitted
  bool llvm_opt = false;  // after LLVM's passes
  bool assembly = false;
  /// Kernels and tables alone, showing `tc_model_desc`: to be linked with the run time built as an ordinary library,
  /// for sanitizers and debuggers.
  bool kernels = false;
  /// Lines "key = value": what a weight file must agree on besides names and shapes.
  std::string architecture;
};

/// The bytes of what was asked for; the others are empty.
struct Compiled {
  std::string object, archive, shared, kernels;
  std::string llvm, llvm_opt, assembly;
  uint64_t build_id = 0;
};

/// Identifies the interface and the code of a module's library: header, Python module and library compare it.
uint64_t build_id(const ir::Module& planned, const Target& target, int optimisation);

std::optional<Compiled> compile(const ir::Module& planned, const Target& target, const CompileRequest& request,
                                ir::Diagnostics& diagnostics);

}  // namespace tfc::codegen
