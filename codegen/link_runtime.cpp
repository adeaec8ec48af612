#include "codegen/link_runtime.h"

#include <vector>

#include "codegen/function_attributes.h"
#include "ir/check.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

/// The bytes of the run time's bitcode (cmake/runtime_bitcode.cmake).
extern "C" const char tfc_runtime_bitcode[];
extern "C" const uint64_t tfc_runtime_bitcode_size;

namespace tfc::codegen {

namespace {

constexpr llvm::StringLiteral kPublicPrefix = "tc_rt_";

llvm::StringRef bitcode() { return {tfc_runtime_bitcode, tfc_runtime_bitcode_size}; }

/// The run time was compiled for plain x86-64; here it follows the kernels' target.
void retarget(llvm::Module& runtime, const Target& target) {
  for (llvm::Function& function : runtime) {
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width"}) {
      function.removeFnAttr(attribute);
    }
    if (!function.isDeclaration()) set_function_attributes(function, target);
  }
}

void internalise(llvm::Module& module) {
  for (llvm::GlobalValue& value : module.global_values()) {
    if (value.isDeclaration() || value.hasLocalLinkage()) continue;
    value.setLinkage(llvm::GlobalValue::InternalLinkage);
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    if (auto* object = llvm::dyn_cast<llvm::GlobalObject>(&value)) object->setComdat(nullptr);
  }
}

void export_public(llvm::Module& module, const std::string& name) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() && function.getName().starts_with(kPublicPrefix)) functions.push_back(&function);
  }
  for (llvm::Function* function : functions) {
    const std::string suffix = function->getName().drop_front(kPublicPrefix.size()).str();
    llvm::GlobalAlias::create(llvm::GlobalValue::ExternalLinkage, name + "_" + suffix, function);
  }
}

}  // namespace

void link_runtime(llvm::Module& module, const std::string& name, const Target& target) {
  auto parsed = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode(), "runtime"), module.getContext());
  if (!parsed) ir::compiler_fault("the embedded run time cannot be read: " + llvm::toString(parsed.takeError()));
  (*parsed)->setTargetTriple(module.getTargetTriple());
  (*parsed)->setDataLayout(module.getDataLayout());
  retarget(**parsed, target);
  TFC_CHECK(!llvm::Linker::linkModules(module, std::move(*parsed)), "the embedded run time does not link");
  internalise(module);
  export_public(module, name);
}

uint64_t runtime_hash() { return llvm::xxh3_64bits(bitcode()); }

}  // namespace tfc::codegen
