// One row for each sequence: its first or last real token, or the mean of the real ones.
#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

namespace {

using ir::DType;

/// The real tokens of a sequence: how many, and the first and last (T and -1 where there is none).
struct Real {
  Var count, first, last;
};

Real real_tokens(KernelBuilder& k, Ptr mask, Val b, Val T) {
  Real real{k.var(T), k.var(k.index(0)), k.var(T - 1)};
  k.if_(!k.is_null(mask), [&] {
    real.count.set(k.index(0));
    real.first.set(T);
    real.last.set(k.index(-1));
    k.loop("token", T, [&](Val t) {
      k.if_(k.load(mask, b * T + t) != 0, [&] {
        real.count.set(real.count.get() + 1);
        real.first.set(k.min(real.first.get(), t));
        real.last.set(t);
      });
    });
  });
  return real;
}

Val is_real(KernelBuilder& k, Ptr mask, Val row) {
  Var real = k.var(k.index(1));
  k.if_(!k.is_null(mask), [&] { real.set(k.to_index(k.load(mask, row))); });
  return real.get() != 0;
}

/// pool {kind = first | mean | last, width}   slots: B, out, x, mask (or null), T, stride of x. A task is a
/// sequence.
llvm::Function* emit_pool(KernelBuilder& k, const ir::KernelSpec& spec) {
  const std::string& kind = spec.attributes.text("kind");
  const int64_t D = spec.attributes.integer("width");
  const Ptr mask = k.pointer(3, DType::U8);
  const Val T = k.integer(4);
  k.for_tasks([&](Val b) {
    const Ptr out = k.at(k.pointer(1), b * D);
    const Real real = real_tokens(k, mask, b, T);
    auto row = [&](Val t) { return k.at(k.pointer(2), (b * T + t) * k.integer(5)); };
    k.zero(out, k.index(D));
    k.if_(real.count.get() > 0, [&] {
      if (kind != "mean") {
        const Ptr x = row(kind == "first" ? real.first.get() : real.last.get());
        k.vector_loop("copy", k.index(D), [&](Lane d) { k.store(out, d, k.load(x, d)); });
        return;
      }
      k.loop("token", T, [&](Val t) {
        k.if_(is_real(k, mask, b * T + t), [&] {
          k.vector_loop("add", k.index(D),
                        [&](Lane d) { k.store(out, d, k.load(out, d) + k.load(row(t), d)); });
        });
      });
      const Val share = 1.0 / k.to_real(real.count.get());
      k.vector_loop("mean", k.index(D), [&](Lane d) { k.store(out, d, k.load(out, d) * share); });
    });
  });
  return k.finish();
}

/// any_real   slots: B, out, mask, T. One task.
llvm::Function* emit_any_real(KernelBuilder& k, const ir::KernelSpec&) {
  const Val T = k.integer(3);
  k.for_tasks([&](Val) {
    k.loop("row", k.integer(0), [&](Val b) {
      const Real real = real_tokens(k, k.pointer(2, DType::U8), b, T);
      k.store(k.pointer(1, DType::U8), b,
              k.select(real.count.get() > 0, k.constant(DType::U8, 1), k.constant(DType::U8, 0)));
    });
  });
  return k.finish();
}

/// pool_grad {kind, width}   slots: B, dx, dy, mask (or null), T, stride of dx, of dy. A task is a sequence.
llvm::Function* emit_pool_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  const std::string& kind = spec.attributes.text("kind");
  const Val D = k.index(spec.attributes.integer("width"));
  const Ptr mask = k.pointer(3, DType::U8);
  const Val T = k.integer(4);
  k.for_tasks([&](Val b) {
    const Real real = real_tokens(k, mask, b, T);
    const Ptr dy = k.at(k.pointer(2), b * k.integer(6));
    const Val share = kind == "mean" ? 1.0 / k.to_real(k.max(real.count.get(), k.index(1))) : k.number(1);
    k.loop("token", T, [&](Val t) {
      const Ptr dx = k.at(k.pointer(1), (b * T + t) * k.integer(5));
      const Val chosen = kind == "mean" ? is_real(k, mask, b * T + t)
                                        : t == (kind == "first" ? real.first.get() : real.last.get());
      k.if_(
          chosen, [&] { k.vector_loop("copy", D, [&](Lane d) { k.store(dx, d, k.load(dy, d) * share); }); },
          [&] { k.zero(dx, D); });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> pool_kernels() {
  return {{"pool", emit_pool}, {"any_real", emit_any_real}, {"pool_grad", emit_pool_grad}};
}

}  // namespace tfc::codegen
