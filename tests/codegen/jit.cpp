#include "jit.h"

#include <cstdlib>
#include <cstring>

#include "codegen/kernels/kernels.h"
#include "codegen/optimise.h"
#include "ir/check.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

namespace tfc::test {

using KernelFunction = void (*)(const int64_t*, int64_t, int64_t, void*);

struct JitKernel::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  KernelFunction function = nullptr;
};

namespace {

template <class T>
T expect(llvm::Expected<T> value) {
  if (!value) ir::compiler_fault(llvm::toString(value.takeError()));
  return std::move(*value);
}

std::string emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  TFC_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, kind), "the target cannot write this kind of file");
  passes.run(module);
  return std::string(text);
}

}  // namespace

/// The kernel's code in the form asked for.
static std::string compiled(const std::function<llvm::Function*(llvm::Module&)>& emit, const codegen::Target& target,
                            int optimisation, llvm::CodeGenFileType kind) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  std::unique_ptr<llvm::TargetMachine> machine = codegen::make_target_machine(target, optimisation);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  emit(module)->setLinkage(llvm::GlobalValue::ExternalLinkage);
  codegen::optimise(module, *machine, optimisation);
  return emit_file(module, *machine, kind);
}

JitKernel::JitKernel(const ir::KernelSpec& spec, const codegen::Target& target, int optimisation)
    : impl_(std::make_unique<Impl>()), target_(target), optimisation_(optimisation) {
  emit_ = [spec, target](llvm::Module& module) { return codegen::emit_kernel(module, target, spec, "kernel"); };
  compile();
}

JitKernel::JitKernel(const Emit& emit, ir::DType real, const codegen::Target& target, int optimisation)
    : impl_(std::make_unique<Impl>()), target_(target), optimisation_(optimisation) {
  emit_ = [emit, real, target](llvm::Module& module) {
    codegen::KernelBuilder builder(module, target, "kernel", real);
    return emit(builder);
  };
  compile();
}

void JitKernel::compile() {
  const std::string object = compiled(emit_, target_, optimisation_, llvm::CodeGenFileType::ObjectFile);
  impl_->jit = expect(llvm::orc::LLJITBuilder().create());
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kernel.o");
  if (auto error = impl_->jit->addObjectFile(std::move(buffer))) ir::compiler_fault(llvm::toString(std::move(error)));
  impl_->function = expect(impl_->jit->lookup("kernel")).toPtr<KernelFunction>();
}

std::string JitKernel::assembly() const {
  return compiled(emit_, target_, optimisation_, llvm::CodeGenFileType::AssemblyFile);
}

JitKernel::~JitKernel() = default;

void JitKernel::run(const std::vector<SlotValue>& slots, int64_t tasks, int64_t scratch_bytes, TaskOrder order) const {
  std::vector<int64_t> words;
  for (const SlotValue& slot : slots) words.push_back(slot.word);
  const size_t bytes = (static_cast<size_t>(scratch_bytes) + 63) / 64 * 64;
  std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(64, bytes + 64), std::free);
  std::memset(scratch.get(), 0xff, bytes + 64);
  if (order == TaskOrder::Together) impl_->function(words.data(), 0, tasks, scratch.get());
  for (int64_t i = 0; i < tasks && order != TaskOrder::Together; ++i) {
    const int64_t task = order == TaskOrder::Forward ? i : tasks - 1 - i;
    impl_->function(words.data(), task, task + 1, scratch.get());
  }
  const unsigned char* end = static_cast<const unsigned char*>(scratch.get()) + bytes;
  for (int i = 0; i < 64; ++i) TFC_CHECK(end[i] == 0xff, "a kernel wrote past its scratch");
}

std::vector<std::string> runnable_levels() {
  std::vector<std::string> levels = {"x86-64-v2"};
  if (__builtin_cpu_supports("x86-64-v3")) levels.push_back("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v4")) levels.push_back("x86-64-v4");
  return levels;
}

codegen::Target target_of(const std::string& level) {
  ir::Diagnostics diagnostics;
  std::optional<codegen::Target> target = codegen::resolve_target(level, diagnostics);
  TFC_CHECK(target.has_value(), "no target " + level);
  return *target;
}

}  // namespace tfc::test
