// Cross entropy of rows of logits, a chunk of rows at a time: the products around it are ordinary product
// records (passes/lower/loss.cpp). With x a row of logits, t its target, lse = log sum_v exp(x_v), e the
// label smoothing:
//
//   loss      = (1 - e) (lse - x_t) + e/V sum_v (lse - x_v)
//   dloss/dx_v = exp(x_v - lse) - e/V - (1 - e) [v = t]
//
// A row counts when its target is not ignore_index and its mask is 1. What stands in other rows is not read:
// their loss and gradients are zero whatever it is, NaN included. Sums over a row and over rows are in
// double.
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

/// The targets of a chunk of rows, and which of its rows count.
struct Targets {
  KernelBuilder& k;
  Ptr targets, mask;
  Val ignore_index;

  Targets(KernelBuilder& builder, int targets_slot, int mask_slot, int ignore_slot)
      : k(builder),
        targets(k.pointer(targets_slot, ir::DType::I32)),
        mask(k.pointer(mask_slot, ir::DType::U8)),
        ignore_index(k.integer(ignore_slot)) {}

  Val target(Val row) { return k.to_index(k.load(targets, row)); }

  Val counts(Val row) {
    Var result = k.var(target(row) != ignore_index);
    k.if_(!k.is_null(mask), [&] { result.set(result.get() & (k.to_index(k.load(mask, row)) != 0)); });
    return result.get();
  }
};

/// Tasks are runs of `rows_per_task` rows.
void for_rows(KernelBuilder& k, Val rows, Val rows_per_task, const std::function<void(Val row)>& body) {
  k.for_tasks([&](Val task) {
    const Val first = task * rows_per_task;
    k.loop("row", first, k.min(rows, first + rows_per_task), 1, body);
  });
}

/// loss_count {}  how many rows count
/// slots: count f64, targets, mask or null, rows, ignore_index. One task.
llvm::Function* emit_loss_count(KernelBuilder& k, const ir::KernelSpec&) {
  Targets targets(k, 1, 2, 4);
  k.for_tasks([&](Val) {
    Var count = k.var(k.index(0));
    k.loop("row", k.integer(3),
           [&](Val row) { count.set(count.get() + k.select(targets.counts(row), k.index(1), k.index(0))); });
    k.store(k.pointer(0, ir::DType::F64), k.index(0), k.to_double(count.get()));
  });
  return k.finish();
}

struct LossEmitter {
  KernelBuilder& k;
  double smoothing;
  bool gradient;
  Val width;
  Val upstream;  // of each row's loss: 1, or 1 / count

  /// Greatest logit, and the sum of exp(x - greatest); with `keep` the row becomes these exponentials.
  struct Softmax {
    Val greatest, sum;
    Val log_sum;  // of exp(x): in double
  };
  Softmax softmax(Ptr row, bool keep) {
    Softmax result;
    result.greatest = k.maximum("greatest", width, [&](Lane lane) { return k.load(row, lane); });
    result.sum = k.sum_in(ir::DType::F64, "exponentials", width, [&](Lane lane) {
      const Val value = exp_nonpositive(k.load(row, lane) - result.greatest);
      if (keep) k.store(row, lane, value);
      return value;
    });
    result.log_sum = k.to_double(result.greatest) + log(result.sum);
    return result;
  }

  Val over_width(double factor) { return k.constant(ir::DType::F64, factor) / k.to_double(width); }

  /// The row's loss in double; its logits become their gradient.
  Val row_loss(Ptr row, Val target) {
    const Val x_target = k.to_double(k.load(row, target));
    Val sum_of_logits;
    if (smoothing != 0)
      sum_of_logits = k.sum_in(ir::DType::F64, "logits", width, [&](Lane lane) { return k.load(row, lane); });
    const Softmax s = softmax(row, gradient);
    Val loss = (s.log_sum - x_target) * (1 - smoothing);
    if (smoothing != 0) loss = loss + s.log_sum * smoothing - sum_of_logits * over_width(smoothing);
    if (gradient) {
      const Val factor = k.to_real(upstream / s.sum);
      const Val offset = smoothing != 0 ? k.to_real(upstream * over_width(smoothing)) : k.number(0.0);
      k.vector_loop("gradient", width,
                    [&](Lane lane) { k.store(row, lane, k.load(row, lane) * factor - offset); });
      k.store(row, target, k.load(row, target) - k.to_real(upstream * (1 - smoothing)));
    }
    return loss;
  }
};

/// What a row's loss is multiplied by: 1, or 1 / count where `mean` is not 0 (0 where nothing counts).
Val upstream_factor(KernelBuilder& k, Ptr count, Ptr mean) {
  const Val one = k.constant(ir::DType::F64, 1.0);
  Var factor = k.var(one);
  k.if_(k.load(mean) != 0.0, [&] {
    const Val n = k.load(count);
    factor.set(k.select(n > 0.0, one / n, k.constant(ir::DType::F64, 0.0)));
  });
  return factor.get();
}

/// softmax_loss {gradient, smoothing}  each row's loss; with `gradient` its logits become the loss's gradient
/// slots: logits, row losses f64, targets, mask or null, rows, width V, row stride, ignore_index, rows per
/// task, count f64, mean f64 (both with `gradient` only)
llvm::Function* emit_softmax_loss(KernelBuilder& k, const ir::KernelSpec& spec) {
  const bool gradient = spec.attributes.flag("gradient");
  const Ptr logits = k.pointer(0), losses = k.pointer(1, ir::DType::F64);
  const Val width = k.integer(5), stride = k.integer(6);
  Targets targets(k, 2, 3, 7);
  Val upstream;
  if (gradient) upstream = upstream_factor(k, k.pointer(9, ir::DType::F64), k.pointer(10, ir::DType::F64));
  LossEmitter emitter{k, spec.attributes.real("smoothing", 0.0), gradient, width, upstream};
  for_rows(k, k.integer(4), k.integer(8), [&](Val row) {
    const Ptr x = k.at(logits, row * stride);
    k.if_(
        targets.counts(row), [&] { k.store(losses, row, emitter.row_loss(x, targets.target(row))); },
        [&] {
          k.store(losses, row, k.constant(ir::DType::F64, 0.0));
          if (gradient) k.zero(x, width);
        });
  });
  return k.finish();
}

/// softmax_logprob {}  log p of each row's target; 0 where it does not count
/// slots: logits, log-probabilities, targets, mask or null, rows, width V, row stride, ignore_index, rows per
/// task
llvm::Function* emit_softmax_logprob(KernelBuilder& k, const ir::KernelSpec&) {
  const Ptr logits = k.pointer(0), out = k.pointer(1);
  Targets targets(k, 2, 3, 7);
  LossEmitter emitter{k, 0, false, k.integer(5), {}};
  for_rows(k, k.integer(4), k.integer(8), [&](Val row) {
    Var value = k.var(k.number(0.0));
    k.if_(targets.counts(row), [&] {
      const Ptr x = k.at(logits, row * k.integer(6));
      const Val x_target = k.to_double(k.load(x, targets.target(row)));
      value.set(k.to_real(x_target - emitter.softmax(x, false).log_sum));
    });
    k.store(out, row, value.get());
  });
  return k.finish();
}

/// counted_rows {}  a copy of rows, zeros where a row does not count
/// slots: out [rows, width], rows' source, targets, mask or null, rows, width, source's stride, ignore_index,
/// rows per task
llvm::Function* emit_counted_rows(KernelBuilder& k, const ir::KernelSpec&) {
  const Ptr out = k.pointer(0), source = k.pointer(1);
  const Val width = k.integer(5);
  Targets targets(k, 2, 3, 7);
  for_rows(k, k.integer(4), k.integer(8), [&](Val row) {
    const Ptr to = k.at(out, row * width);
    k.if_(
        targets.counts(row),
        [&] {
          const Ptr from = k.at(source, row * k.integer(6));
          k.vector_loop("copy", width, [&](Lane lane) { k.store(to, lane, k.load(from, lane)); });
        },
        [&] { k.zero(to, width); });
  });
  return k.finish();
}

/// loss_sum {}  the sum of the rows' losses
/// slots: sum f64, row losses f64, rows. One task.
llvm::Function* emit_loss_sum(KernelBuilder& k, const ir::KernelSpec&) {
  k.for_tasks([&](Val) {
    const Ptr losses = k.pointer(1, ir::DType::F64);
    const Val total =
        k.sum_in(ir::DType::F64, "rows", k.integer(2), [&](Lane lane) { return k.load(losses, lane); });
    k.store(k.pointer(0, ir::DType::F64), k.index(0), total);
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> loss_kernels() {
  return {{"loss_count", emit_loss_count},
          {"softmax_loss", emit_softmax_loss},
          {"softmax_logprob", emit_softmax_logprob},
          {"counted_rows", emit_counted_rows},
          {"loss_sum", emit_loss_sum}};
}

}  // namespace tfc::codegen
