#include "codegen/codegen.h"
#include "codegen/link_runtime.h"
#include "codegen/optimise.h"
#include "codegen/tables.h"
#include "codegen/target.h"
#include "codegen/write_object.h"
#include "ir/check.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace tfc::codegen {

namespace {

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return stream.str();
}

void check(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  TFC_CHECK(!llvm::verifyModule(module, &stream), "the generated LLVM module is malformed: " + stream.str());
}

bool needs_runtime(const CompileRequest& request) {
  return request.object || request.archive || request.shared || request.llvm_opt || request.assembly;
}

}  // namespace

uint64_t build_id(const ir::Module& planned, const Target& target, int optimisation) {
  // Where things stand in the user's file makes no difference to a library.
  const std::string text = ir::print(planned, ir::Places::Without) + '\0' + target.cpu + '\0' + target.tune +
                           '\0' + std::to_string(optimisation) + '\0' + std::to_string(runtime_hash());
  const uint64_t hash = llvm::xxh3_64bits(text);
  return hash == 0 ? 1 : hash;  // 0 means "any build" to NAME_api
}

std::optional<Compiled> compile(const ir::Module& planned, const Target& target, const CompileRequest& request,
                                ir::Diagnostics& diagnostics) {
  TFC_CHECK(planned.phase == ir::Phase::Planned, "code is generated from planned modules only");
  llvm::LLVMContext context;
  auto machine = make_target_machine(target, request.optimisation);
  llvm::Module module(planned.name, context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());

  Compiled result;
  result.build_id = build_id(planned, target, request.optimisation);
  emit_tables(module, planned, target, result.build_id, request.architecture);
  check(module);
  if (request.llvm) result.llvm = text_of(module);  // kernels and tables, before the run time joins them

  if (request.kernels) {
    auto alone = llvm::CloneModule(module);
    optimise(*alone, *machine, request.optimisation);
    result.kernels = write_object(*alone, *machine, /*assembly=*/false);
  }
  if (!needs_runtime(request)) return result;

  link_runtime(module, planned.name, target);
  optimise(module, *machine, request.optimisation);
  check(module);
  if (request.llvm_opt) result.llvm_opt = text_of(module);

  if (request.assembly) result.assembly = write_object(*llvm::CloneModule(module), *machine, /*assembly=*/true);
  if (!request.object && !request.archive && !request.shared) return result;
  result.object = write_object(module, *machine, /*assembly=*/false);
  if (request.archive) result.archive = write_archive(result.object, planned.name + ".o");
  if (request.shared) {
    auto shared = write_shared(result.object, planned.name, diagnostics);
    if (!shared) return std::nullopt;
    result.shared = std::move(*shared);
  }
  return result;
}

}  // namespace tfc::codegen
