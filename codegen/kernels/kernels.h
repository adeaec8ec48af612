// Emitters by kernel family (ir::KernelSpec::family). Each builds one function from the spec's attributes; the
// comment above each emitter lists its slots, which is the order of arguments that passes/lower/<family>.cpp writes.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_builder.h"
#include "ir/plan.h"

namespace tfc::codegen {

using Emitter = llvm::Function* (*)(KernelBuilder& k, const ir::KernelSpec& spec);

struct KernelFamily {
  std::string_view name;
  Emitter emit;
};

/// All families: the concatenation of the files' own tables below.
const std::vector<KernelFamily>& kernel_families();

// One table per file of codegen/kernels/.
std::vector<KernelFamily> product_kernels();
std::vector<KernelFamily> loss_kernels();
std::vector<KernelFamily> elementwise_kernels();
std::vector<KernelFamily> edit_kernels();
std::vector<KernelFamily> dropout_kernels();
std::vector<KernelFamily> norm_kernels();
std::vector<KernelFamily> embedding_kernels();
std::vector<KernelFamily> attention_kernels();
std::vector<KernelFamily> patch_kernels();
std::vector<KernelFamily> layer_scale_kernels();
std::vector<KernelFamily> pool_kernels();
std::vector<KernelFamily> expert_kernels();
std::vector<KernelFamily> balance_kernels();
std::vector<KernelFamily> update_kernels();

/// Emits the kernel of `spec` into `module` under `name`; an unknown family is a compiler fault.
llvm::Function* emit_kernel(llvm::Module& module, const Target& target, const ir::KernelSpec& spec,
                            const std::string& name);

}  // namespace tfc::codegen
