// A factor for each column (LayerScale, Touvron et al. 2021) and its gradient, by rows of width D.
#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

namespace {

/// scale_columns {width = D, chunk}   slots: rows, out, x, gamma, strides of out, of x. A task is `chunk` rows.
llvm::Function* emit_scale_columns(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  k.for_tasks([&](Val task) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(4)), x = k.at(k.pointer(2), row * k.integer(5));
      k.vector_loop("d", k.index(spec.attributes.integer("width")),
                    [&](Lane d) { k.store(out, d, k.load(x, d) * k.load(k.pointer(3), d)); });
    });
  });
  return k.finish();
}

/// scale_columns_grad {width = D, chunk, dx, dgamma}
/// slots: rows, dx, dy, x, gamma, partial sums [tasks, D], strides of dx, dy, x
/// dx = dy * gamma; each task leaves its rows' sums of dy * x in its own place.
llvm::Function* emit_scale_columns_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t width = spec.attributes.integer("width"), chunk = spec.attributes.integer("chunk");
  const bool wants_dx = spec.attributes.flag("dx"), wants_dgamma = spec.attributes.flag("dgamma");
  const Val D = k.index(width);
  k.for_tasks([&](Val task) {
    const Ptr partial = k.at(k.pointer(5), task * width);
    if (wants_dgamma) k.zero(partial, D);
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const Ptr dx = k.at(k.pointer(1), row * k.integer(6)), dy = k.at(k.pointer(2), row * k.integer(7)),
                x = k.at(k.pointer(3), row * k.integer(8));
      k.vector_loop("d", D, [&](Lane d) {
        const Val g = k.load(dy, d);
        if (wants_dgamma) k.store(partial, d, fma(g, k.load(x, d), k.load(partial, d)));
        if (wants_dx) k.store(dx, d, g * k.load(k.pointer(4), d));
      });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> layer_scale_kernels() {
  return {{"scale_columns", emit_scale_columns}, {"scale_columns_grad", emit_scale_columns_grad}};
}

}  // namespace tfc::codegen
