#include "codegen/target.h"

#include <algorithm>
#include <vector>

#include "codegen/function_attributes.h"
#include "ir/check.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

namespace tfc::codegen {

namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

const llvm::Target& llvm_target() {
  static const llvm::Target* target = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
    TFC_CHECK(found, "LLVM has no x86-64 target: " + error);
    return found;
  }();
  return *target;
}

/// What each x86-64 level asks for beyond the one below, of what kernels use.
constexpr const char* kLevel4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
constexpr const char* kLevel3[] = {"avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"};
constexpr const char* kLevel2[] = {"sse4.2", "popcnt", "ssse3", "cx16"};

template <typename HasFeature>
int level_of(HasFeature has) {
  auto all = [&](const auto& names) { return std::all_of(std::begin(names), std::end(names), has); };
  if (!all(kLevel2)) return 1;
  if (!all(kLevel3)) return 2;
  return all(kLevel4) ? 4 : 3;
}

int host_level() {
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return level_of([&](const char* name) {
    auto found = features.find(name);
    return found != features.end() && found->second;
  });
}

/// 0 where LLVM does not know the CPU.
int named_level(const std::string& cpu) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(llvm_target().createMCSubtargetInfo(kTriple, "", ""));
  if (!info || !info->isCPUStringValid(cpu)) return 0;  // asked first: LLVM prints its own complaint otherwise
  info.reset(llvm_target().createMCSubtargetInfo(kTriple, cpu, ""));
  return level_of([&](const char* name) { return info->checkFeatures(std::string("+") + name); });
}

Target of_level(int level, const std::string& tune, const std::string& requested) {
  Target target;
  target.cpu = "x86-64-v" + std::to_string(level);
  target.tune = tune;
  target.requested = requested;
  target.isa_level = level;
  target.fma = level >= 3;
  target.vector_bytes = level == 4 ? 64 : level == 3 ? 32 : 16;
  target.registers = level == 4 ? 32 : 16;
  return target;
}

}  // namespace

std::optional<Target> resolve_target(const std::string& requested, ir::Diagnostics& diagnostics) {
  const bool native = requested == "native";
  const std::string cpu = native ? llvm::sys::getHostCPUName().str() : requested;
  int level = native ? host_level() : named_level(cpu);
  if (requested == "multi") {
    diagnostics.error({}, "not supported yet: --cpu=multi; name one CPU or level, or use native");
    return std::nullopt;
  }
  if (level == 0) {
    diagnostics.error({}, "unknown CPU '" + requested + "' for --cpu; use native, x86-64-v2, x86-64-v3, x86-64-v4 or "
                          "one of LLVM's names such as skylake-avx512 or znver4");
    return std::nullopt;
  }
  if (level == 1) {
    diagnostics.error({}, "CPU '" + cpu + "' is below x86-64-v2, the least that kernels are made for");
    return std::nullopt;
  }
  // Code is made for the level, which model_create can check, and scheduled for the CPU.
  return of_level(level, cpu, requested);
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, int level) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // fma only where an emitter wrote it
  const auto codegen_level = static_cast<llvm::CodeGenOptLevel>(std::clamp(level, 0, 3));
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target().createTargetMachine(
      kTriple, target.cpu, "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small, codegen_level));
  TFC_CHECK(machine, "LLVM makes no target machine for " + target.cpu);
  return machine;
}

void set_function_attributes(llvm::Function& function, const Target& target) {
  function.addFnAttr("target-cpu", target.cpu);
  function.addFnAttr("tune-cpu", target.tune);
  // Both: with the second at 0 LLVM splits 512-bit values on CPUs that it thinks prefer 256 bits.
  const std::string bits = std::to_string(target.vector_bytes * 8);
  function.addFnAttr("prefer-vector-width", bits);
  function.addFnAttr("min-legal-vector-width", bits);
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

}  // namespace tfc::codegen
