// Compiles one kernel in memory and runs it, as the generated library's run time would: over its tasks, in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel_builder.h"
#include "codegen/target.h"
#include "ir/plan.h"

namespace tfc::test {

/// In which order a kernel's tasks run: whole ranges as one thread would, or one by one.
enum class TaskOrder { Together, Forward, Backward };

/// An argument: anything that fits a slot.
struct SlotValue {
  int64_t word;
  SlotValue(int64_t value) : word(value) {}              // NOLINT
  SlotValue(int value) : word(value) {}                  // NOLINT
  SlotValue(size_t value) : word(static_cast<int64_t>(value)) {}  // NOLINT
  SlotValue(std::nullptr_t) : word(0) {}                 // NOLINT
  template <class T>
  SlotValue(T* pointer) : word(static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer))) {}  // NOLINT
  template <class T>
  SlotValue(std::vector<T>& memory) : SlotValue(memory.data()) {}  // NOLINT
};

class JitKernel {
 public:
  /// optimisation: as for codegen::optimise.
  JitKernel(const ir::KernelSpec& spec, const codegen::Target& target, int optimisation = 2);
  /// A kernel that no family has: whatever `emit` builds.
  using Emit = std::function<llvm::Function*(codegen::KernelBuilder&)>;
  JitKernel(const Emit& emit, ir::DType real, const codegen::Target& target, int optimisation = 2);
  ~JitKernel();
  JitKernel(const JitKernel&) = delete;
  JitKernel& operator=(const JitKernel&) = delete;

  /// Scratch is filled with NaNs, so that a kernel that relies on its content shows.
  void run(const std::vector<SlotValue>& slots, int64_t tasks, int64_t scratch_bytes,
           TaskOrder order = TaskOrder::Together) const;

  /// What the code generator makes of it; compiles once more.
  std::string assembly() const;

 private:
  using EmitIn = std::function<llvm::Function*(llvm::Module&)>;
  void compile();

  struct Impl;
  std::unique_ptr<Impl> impl_;
  EmitIn emit_;
  codegen::Target target_;
  int optimisation_;
};

/// The x86-64 levels that this machine can run: "x86-64-v2" ... (always at least one).
std::vector<std::string> runnable_levels();
codegen::Target target_of(const std::string& level);

}  // namespace tfc::test
