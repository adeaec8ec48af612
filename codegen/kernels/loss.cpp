// Losses of rows of outputs x, a chunk of rows at a time: the products around them are ordinary product records
// (passes/lower/loss.cpp). Of a row of N outputs, by the attribute `kind`:
//
//   cross_entropy         (1 - e) (lse - x_t) + e/N sum_n (lse - x_n), with lse = log sum_n exp(x_n), t the target, e the
//                         label smoothing;     d/dx_n = exp(x_n - lse) - e/N - (1 - e) [n = t]
//   binary_cross_entropy  1/N sum_n (log(1 + exp(x_n)) - t_n x_n);     d/dx_n = (sigmoid(x_n) - t_n) / N
//   mse                   1/N sum_n (x_n - t_n)^2;     d/dx_n = 2 (x_n - t_n) / N
//
// times the row's weight where there are weights. A row counts when its mask is 1, its weight is not 0 and, in cross
// entropy, its target is not ignore_index. What stands in other rows is not read: their loss and gradients are zero
// whatever it is, NaN included. Sums over a row and over rows are in double.
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

const std::string kCrossEntropy = "cross_entropy";

std::string kind_of(const ir::KernelSpec& spec) { return spec.attributes.text("kind", kCrossEntropy); }

/// The targets of a chunk of rows, their weights, and which of its rows count. `weights_slot`: where the weights are,
/// if the kernel has them.
struct Targets {
  KernelBuilder& k;
  const bool classes, weighted;
  Ptr targets, mask, weights;
  Val ignore_index;

  Targets(KernelBuilder& builder, const ir::KernelSpec& spec, int targets_slot, int mask_slot, int ignore_slot,
          int weights_slot)
      : k(builder),
        classes(kind_of(spec) == kCrossEntropy),
        weighted(spec.attributes.flag("weighted")),
        targets(classes ? k.pointer(targets_slot, ir::DType::I32) : k.pointer(targets_slot)),
        mask(k.pointer(mask_slot, ir::DType::U8)),
        ignore_index(k.integer(ignore_slot)) {
    if (weighted) weights = k.pointer(weights_slot);
  }

  Val target(Val row) { return k.to_index(k.load(targets, row)); }
  Val weight(Val row) { return k.to_double(k.load(weights, row)); }

  Val counts(Val row) {
    Var result = k.var(classes ? target(row) != ignore_index : k.index(0) == k.index(0));
    k.if_(!k.is_null(mask), [&] { result.set(result.get() & (k.to_index(k.load(mask, row)) != 0)); });
    if (weighted) {  // not read where the row does not count anyway
      k.if_(result.get(), [&] { result.set(k.load(weights, row) != 0.0); });
    }
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

/// loss_count {kind, weighted}  how many rows count, or the sum of their weights
/// slots: count f64, targets, mask or null, rows, ignore_index, weights (with `weighted` only). One task.
llvm::Function* emit_loss_count(KernelBuilder& k, const ir::KernelSpec& spec) {
  Targets targets(k, spec, 1, 2, 4, 5);
  k.for_tasks([&](Val) {
    if (targets.weighted) {
      Var sum = k.var(k.constant(ir::DType::F64, 0.0));
      k.loop("row", k.integer(3), [&](Val row) {
        k.if_(targets.counts(row), [&] { sum.set(sum.get() + targets.weight(row)); });
      });
      k.store(k.pointer(0, ir::DType::F64), k.index(0), sum.get());
      return;
    }
    Var count = k.var(k.index(0));
    k.loop("row", k.integer(3),
           [&](Val row) { count.set(count.get() + k.select(targets.counts(row), k.index(1), k.index(0))); });
    k.store(k.pointer(0, ir::DType::F64), k.index(0), k.to_double(count.get()));
  });
  return k.finish();
}

struct LossEmitter {
  KernelBuilder& k;
  std::string kind;
  double smoothing;
  bool gradient;
  Val width;

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

  /// The row's loss in double; its logits become their gradient, times `upstream`.
  Val cross_entropy(Ptr row, Val target, Val upstream) {
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

  /// log(1 + y) for 0 <= y <= 1, to the last digits of a small y.
  Val log_1_plus(Val y) {
    const Val above = 1.0 + y;
    return k.select(above == 1.0, y, log(above) * (y / (above - 1.0)));
  }

  /// Losses with a target for each output. One pass: what is read of x and its target becomes the gradient.
  Val of_numbers(Ptr row, Ptr targets, Val upstream) {
    Val factor;
    if (gradient) factor = k.to_real(upstream * over_width(kind == "mse" ? 2 : 1));
    const Val sum = k.sum_in(ir::DType::F64, "outputs", width, [&](Lane lane) {
      const Val x = k.load(row, lane), target = k.load(targets, lane);
      if (kind == "mse") {
        const Val difference = x - target;
        if (gradient) k.store(row, lane, difference * factor);
        return difference * difference;
      }
      const Val small = exp_nonpositive(-k.abs(x)), positive = x > 0.0;
      if (gradient) {
        const Val p = k.select(positive, k.number(1.0), small) / (1.0 + small);
        k.store(row, lane, (p - target) * factor);
      }
      return k.select(positive, x, k.number(0.0)) - target * x + log_1_plus(small);
    });
    return sum * over_width(1);
  }
};

/// What a row's loss is multiplied by: share, or share / count where `mean` is not 0 (0 where nothing counts).
Val upstream_factor(KernelBuilder& k, double share, Ptr count, Ptr mean) {
  const Val one = k.constant(ir::DType::F64, share);
  Var factor = k.var(one);
  k.if_(k.load(mean) != 0.0, [&] {
    const Val n = k.load(count);
    factor.set(k.select(n > 0.0, one / n, k.constant(ir::DType::F64, 0.0)));
  });
  return factor.get();
}

/// row_loss {kind, gradient, smoothing, weighted, share}  each row's loss; with `gradient` its outputs become the
/// loss's gradient
/// slots: outputs, row losses f64, targets, mask or null, rows, width N, row stride, ignore_index, rows per task,
/// then with `weighted` weights, with `gradient` count f64, mean f64
llvm::Function* emit_row_loss(KernelBuilder& k, const ir::KernelSpec& spec) {
  const bool gradient = spec.attributes.flag("gradient");
  const Ptr outputs = k.pointer(0), losses = k.pointer(1, ir::DType::F64);
  const Val width = k.integer(5), stride = k.integer(6);
  Targets targets(k, spec, 2, 3, 7, 9);
  const int count_slot = targets.weighted ? 10 : 9;
  Val upstream;
  if (gradient) {
    upstream = upstream_factor(k, spec.attributes.real("share", 1.0), k.pointer(count_slot, ir::DType::F64),
                               k.pointer(count_slot + 1, ir::DType::F64));
  }
  LossEmitter emitter{k, kind_of(spec), spec.attributes.real("smoothing", 0.0), gradient, width};
  const auto row_loss = [&](Val row, Ptr x) {
    const Val weight = targets.weighted ? targets.weight(row) : Val{};
    const Val of_row = gradient && targets.weighted ? upstream * weight : upstream;
    const Val loss = targets.classes ? emitter.cross_entropy(x, targets.target(row), of_row)
                                     : emitter.of_numbers(x, k.at(targets.targets, row * width), of_row);
    return targets.weighted ? loss * weight : loss;
  };
  for_rows(k, k.integer(4), k.integer(8), [&](Val row) {
    const Ptr x = k.at(outputs, row * stride);
    k.if_(
        targets.counts(row), [&] { k.store(losses, row, row_loss(row, x)); },
        [&] {
          k.store(losses, row, k.constant(ir::DType::F64, 0.0));
          if (gradient) k.zero(x, width);
        });
  });
  return k.finish();
}

/// softmax_logprob {weighted}  log p of each row's target; 0 where it does not count
/// slots: logits, log-probabilities, targets, mask or null, rows, width N, row stride, ignore_index, rows per
/// task, weights (with `weighted` only)
llvm::Function* emit_softmax_logprob(KernelBuilder& k, const ir::KernelSpec& spec) {
  const Ptr logits = k.pointer(0), out = k.pointer(1);
  Targets targets(k, spec, 2, 3, 7, 9);
  LossEmitter emitter{k, kCrossEntropy, 0, false, k.integer(5)};
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

/// counted_rows {kind, weighted}  which rows count
/// slots: out u8 [rows], targets, mask or null, rows, ignore_index, rows per task, weights (with `weighted` only)
llvm::Function* emit_counted_rows(KernelBuilder& k, const ir::KernelSpec& spec) {
  const Ptr out = k.pointer(0, ir::DType::U8);
  Targets targets(k, spec, 1, 2, 4, 6);
  const Val one = k.constant(ir::DType::U8, 1), none = k.constant(ir::DType::U8, 0);
  for_rows(k, k.integer(3), k.integer(5),
           [&](Val row) { k.store(out, row, k.select(targets.counts(row), one, none)); });
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
          {"row_loss", emit_row_loss},
          {"softmax_logprob", emit_softmax_logprob},
          {"counted_rows", emit_counted_rows},
          {"loss_sum", emit_loss_sum}};
}

}  // namespace tfc::codegen
