#include "codegen/kernels/kernels.h"

#include "ir/check.h"

namespace tfc::codegen {

const std::vector<KernelFamily>& kernel_families() {
  static const std::vector<KernelFamily> families = [] {
    std::vector<KernelFamily> all;
    for (const auto& part : {product_kernels(), loss_kernels(), elementwise_kernels(), edit_kernels(), dropout_kernels(), norm_kernels(),
                             embedding_kernels(), patch_kernels(), layer_scale_kernels(), attention_kernels(),
                             pool_kernels(), update_kernels(), expert_kernels(), balance_kernels()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return families;
}

llvm::Function* emit_kernel(llvm::Module& module, const Target& target, const ir::KernelSpec& spec,
                            const std::string& name) {
  for (const KernelFamily& family : kernel_families()) {
    if (family.name != spec.family) continue;
    const auto real = ir::dtype_from_name(spec.attributes.text("f", "f32"));
    TFC_CHECK(real, "kernel " + spec.text() + " has an unknown element type");
    KernelBuilder k(module, target, name, *real);
    return family.emit(k, spec);
  }
  ir::compiler_fault("no kernel family is named '" + spec.family + "'");
}

}  // namespace tfc::codegen
