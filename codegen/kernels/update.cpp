// The optimizer's step over the whole block of parameters: norm of the gradients, clipping, AdamW.
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

/// sum_squares {chunk}   slots: N, g, partial sums f64 [tasks]. In double; a task is `chunk` elements.
llvm::Function* emit_sum_squares(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  k.for_tasks([&](Val task) {
    const Val first = task * chunk;
    const Ptr g = k.at(k.pointer(1), first);
    const Val sum = k.sum_in(DType::F64, "squares", k.min(k.index(chunk), k.integer(0) - first),
                             [&](Lane lane) { return square(k.to_double(k.load(g, lane))); });
    k.store(k.pointer(2, DType::F64), task, sum);
  });
  return k.finish();
}

/// sum_in_order {}   slots: count, partial sums f64, out f64. One task.
llvm::Function* emit_sum_in_order(KernelBuilder& k, const ir::KernelSpec&) {
  k.for_tasks([&](Val) {
    Var sum = k.var(k.constant(DType::F64, 0));
    k.loop("partial", k.integer(0), [&](Val i) { sum.set(sum.get() + k.load(k.pointer(1, DType::F64), i)); });
    k.store(k.pointer(2, DType::F64), k.index(0), sum);
  });
  return k.finish();
}

/// clip_scale {}   slots: sum of squares, count, clip, scale, norm (or null), all f64. One task.
/// norm = sqrt(sum of squares) / count; scale = 1 / count, times clip / (norm + 1e-6) where that is below 1.
llvm::Function* emit_clip_scale(KernelBuilder& k, const ir::KernelSpec&) {
  auto scalar = [&](int slot) { return k.load(k.pointer(slot, DType::F64)); };
  k.for_tasks([&](Val) {
    const Val count = scalar(1), clip = scalar(2);
    const Val norm = k.sqrt(scalar(0)) / count, inverse = 1.0 / count, shrink = clip / (norm + 1e-6);
    const Val clips = (clip > 0.0) & (shrink < 1.0);
    const Val scale = k.select(clips, inverse * shrink, inverse);
    for (auto [slot, value] : {std::pair(3, scale), std::pair(4, norm)}) {
      k.if_(!k.is_null(k.pointer(slot, DType::F64)),
            [&, slot = slot, value = value] { k.store(k.pointer(slot, DType::F64), k.index(0), value); });
    }
  });
  return k.finish();
}

enum Hyper { kRate, kBeta1, kBeta2, kEpsilon, kWeightDecay, kStep };
enum Prepared { kCorrection1 = 8, kRootCorrection2 = 9 };

/// adamw_prepare {}   slots: hyper f64 [8], prepared f64 [16]. One task: the hyper-parameters, then 1 -
/// beta1^step and sqrt(1 - beta2^step).
llvm::Function* emit_adamw_prepare(KernelBuilder& k, const ir::KernelSpec&) {
  const Ptr hyper = k.pointer(0, DType::F64), prepared = k.pointer(1, DType::F64);
  auto value = [&](int i) { return k.load(hyper, k.index(i)); };
  k.for_tasks([&](Val) {
    for (int i = 0; i < 8; ++i) k.store(prepared, k.index(i), value(i));
    const Val step = k.to_index(value(kStep));
    k.store(prepared, k.index(kCorrection1), 1.0 - power(value(kBeta1), step));
    k.store(prepared, k.index(kRootCorrection2), k.sqrt(1.0 - power(value(kBeta2), step)));
  });
  return k.finish();
}

/// The elements [from, to) of one parameter, as torch.optim.AdamW (Loshchilov, Hutter 2019): decoupled decay,
/// then
///   m = beta1 m + (1 - beta1) g     v = beta2 v + (1 - beta2) g^2     p -= rate / c1 * m / (sqrt v / sqrt c2
///   + eps)
/// and the gradient is zeros for the next step.
struct AdamW {
  KernelBuilder& k;
  Ptr p, g, m, v;

  void update(Val from, Val to, Val scale, Val lr_scale, Val decay) {
    const Ptr prepared = k.pointer(5, DType::F64);
    auto hyper = [&](int i) { return k.load(prepared, k.index(i)); };
    const Val rate = hyper(kRate) * lr_scale;
    const Val shrink = k.to_real(1.0 - rate * hyper(kWeightDecay) * decay);
    const Val beta1 = k.to_real(hyper(kBeta1)), beta2 = k.to_real(hyper(kBeta2));
    const Val rest1 = k.to_real(1.0 - hyper(kBeta1)), rest2 = k.to_real(1.0 - hyper(kBeta2));
    const Val step = k.to_real(rate / hyper(kCorrection1)), root = k.to_real(1.0 / hyper(kRootCorrection2));
    const Val epsilon = k.to_real(hyper(kEpsilon)), factor = k.to_real(scale);
    k.vector_loop("element", from, to, [&](Lane i) {
      const Val gradient = k.load(g, i) * factor;
      const Val first = fma(k.splat(beta1), k.load(m, i), rest1 * gradient);
      const Val second = fma(k.splat(beta2), k.load(v, i), rest2 * gradient * gradient);
      const Val denominator = fma(k.sqrt(second), k.splat(root), k.splat(epsilon));
      k.store(m, i, first);
      k.store(v, i, second);
      k.store(p, i, k.load(p, i) * shrink - step * first / denominator);
      k.store(g, i, k.splat(k.number(0)));
    });
  }
};

Val border(KernelBuilder& k, Ptr borders, Val parameter, int side) {
  return k.to_index(k.load(borders, 2 * parameter + side));
}

/// The first parameter whose border (0: begin, 1: end) is beyond `element`, by bisection: borders ascend.
Val first_past(KernelBuilder& k, Ptr borders, int64_t count, int side, Val element) {
  Var low = k.var(k.index(0)), high = k.var(k.index(count));
  int halvings = 1;
  while ((int64_t{1} << (halvings - 1)) < count) ++halvings;
  k.loop("bisect", k.index(halvings), [&](Val) {
    const Val middle = (low.get() + high.get()) / 2, open = low.get() < high.get();
    const Val past = border(k, borders, k.min(middle, k.index(count - 1)), side) > element;
    const Val next_low = k.select(open & !past, middle + 1, low.get());
    high.set(k.select(open & past, middle, high.get()));
    low.set(next_low);
  });
  return low;
}

/// adamw {parameters = P, chunk}
/// slots: p, g, m, v, scale f64, prepared f64, lr_scale f64 [P], decay f64 [P], borders f64 [P, 2] (a
/// parameter's first element and the one past its last, equal where nothing is to be done), N. A task is
/// `chunk` elements of the block.
llvm::Function* emit_adamw(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk"), count = spec.attributes.integer("parameters");
  const Ptr borders = k.pointer(8, DType::F64);
  AdamW adamw{k, k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3)};
  k.for_tasks([&](Val task) {
    const Val first = task * chunk, last = k.min(first + chunk, k.integer(9));
    const Val begin = first_past(k, borders, count, 1, first);
    const Val end = first_past(k, borders, count, 0, last - 1);
    k.loop("parameter", begin, end, 1, [&](Val i) {
      const Val from = k.max(border(k, borders, i, 0), first), to = k.min(border(k, borders, i, 1), last);
      k.if_(from < to, [&] {
        adamw.update(from, to, k.load(k.pointer(4, DType::F64)), k.load(k.pointer(6, DType::F64), i),
                     k.load(k.pointer(7, DType::F64), i));
      });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> update_kernels() {
  return {{"sum_squares", emit_sum_squares},
          {"sum_in_order", emit_sum_in_order},
          {"clip_scale", emit_clip_scale},
          {"adamw_prepare", emit_adamw_prepare},
          {"adamw", emit_adamw}};
}

}  // namespace tfc::codegen
