// The loss that keeps experts equally busy (Fedus et al. 2021), in double, and its place in the model's loss.
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

/// Routed tokens of a chunk, and the softmax of their logits in double.
struct RoutedRows {
  KernelBuilder& k;
  const int64_t J, chunk;
  const Val X;

  RoutedRows(KernelBuilder& builder, const ir::KernelSpec& spec)
      : k(builder),
        J(spec.attributes.integer("top_k")),
        chunk(spec.attributes.integer("chunk", 1)),
        X(builder.index(spec.attributes.integer("experts"))) {}

  void for_rows(Val task, Val rows, const std::function<void(Val row)>& body) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, rows), 1, body);
  }

  Val is_routed(Ptr experts, Val row) { return k.to_index(k.load(experts, row * J)) >= 0; }

  /// Gives the share of a lane's experts.
  std::function<Val(Lane)> softmax(Ptr logits) {
    const Val greatest = k.maximum("greatest", X, [&](Lane e) { return k.load(logits, e); });
    const auto power = [this, logits, greatest](Lane e) {
      return exp_nonpositive(k.load(logits, e) - greatest);
    };
    const Val sum = k.sum_in(DType::F64, "sum", X, power);
    return [this, power, sum](Lane e) { return k.to_double(power(e)) / sum; };
  }
};

/// balance_parts {experts = X, top_k, chunk}   slots: rows, parts f64 [tasks, X], logits, stride of logits,
/// experts Sums of the softmax over the routed tokens of a chunk.
llvm::Function* emit_balance_parts(KernelBuilder& k, const ir::KernelSpec& spec) {
  RoutedRows rows(k, spec);
  const Ptr experts = k.pointer(4, DType::I32);
  k.for_tasks([&](Val task) {
    const Ptr part = k.at(k.pointer(1, DType::F64), task * rows.X);
    k.zero(part, rows.X);
    rows.for_rows(task, k.integer(0), [&](Val row) {
      k.if_(rows.is_routed(experts, row), [&] {
        const auto share = rows.softmax(k.at(k.pointer(2), row * k.integer(3)));
        k.vector_loop("add", rows.X, [&](Lane e) { k.store(part, e, k.load(part, e) + share(e)); });
      });
    });
  });
  return k.finish();
}

/// balance_sum {experts = X, top_k, factor}   slots: rows, loss f64, slopes f64 [X], parts, count of parts,
/// experts One task.
llvm::Function* emit_balance_sum(KernelBuilder& k, const ir::KernelSpec& spec) {
  RoutedRows rows(k, spec);
  const double factor =
      spec.attributes.real("factor") * static_cast<double>(spec.attributes.integer("experts"));
  const Ptr experts = k.pointer(5, DType::I32), parts = k.pointer(3, DType::F64),
            slopes = k.pointer(2, DType::F64);
  const Val one = k.constant(DType::F64, 1.0), none = k.constant(DType::F64, 0.0);
  k.for_tasks([&](Val) {
    Var tokens = k.var(none), loss = k.var(none);
    k.zero(slopes, rows.X);
    k.loop("token", k.integer(0), [&](Val row) {
      k.if_(rows.is_routed(experts, row), [&] {
        tokens.set(tokens.get() + one);
        k.loop("choice", k.index(rows.J), [&](Val j) {
          const Val expert = k.to_index(k.load(experts, row * rows.J + j));
          k.store(slopes, expert, k.load(slopes, expert) + one);
        });
      });
    });
    const Val share = k.select(tokens.get() > 0.0, factor / (tokens.get() * tokens.get()), none);
    k.loop("expert", rows.X, [&](Val e) {
      const Val slope = k.load(slopes, e) * share;
      k.store(slopes, e, slope);
      Var sum = k.var(none);
      k.loop("part", k.integer(4), [&](Val part) { sum.set(sum.get() + k.load(parts, part * rows.X + e)); });
      loss.set(loss.get() + slope * sum.get());
    });
    k.store(k.pointer(1, DType::F64), k.index(0), loss.get());
  });
  return k.finish();
}

/// balance_grad {experts = X, top_k, chunk}
/// slots: rows, dlogits, stride of dlogits, dbalance f64, slopes f64 [X], experts, logits, stride of logits
llvm::Function* emit_balance_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  RoutedRows rows(k, spec);
  const Ptr slopes = k.pointer(4, DType::F64), experts = k.pointer(5, DType::I32);
  k.for_tasks([&](Val task) {
    rows.for_rows(task, k.integer(0), [&](Val row) {
      const Ptr dlogits = k.at(k.pointer(1), row * k.integer(2));
      k.if_(
          rows.is_routed(experts, row),
          [&] {
            const auto share = rows.softmax(k.at(k.pointer(6), row * k.integer(7)));
            const Val upstream = k.load(k.pointer(3, DType::F64));
            const Val mean =
                k.sum_in(DType::F64, "mean", rows.X, [&](Lane e) { return share(e) * k.load(slopes, e); });
            k.vector_loop("expert", rows.X, [&](Lane e) {
              k.store(dlogits, e, k.to_real(upstream * share(e) * (k.load(slopes, e) - mean)));
            });
          },
          [&] { k.zero(dlogits, rows.X); });
    });
  });
  return k.finish();
}

/// add_balance {losses, share}   slots: out, sum, count, losses one by one; all f64. One task.
llvm::Function* emit_add_balance(KernelBuilder& k, const ir::KernelSpec& spec) {
  const auto scalar = [&](int slot) { return k.load(k.pointer(slot, DType::F64)); };
  k.for_tasks([&](Val) {
    Val sum = k.constant(DType::F64, 0.0);
    for (int i = 0; i < static_cast<int>(spec.attributes.integer("losses")); ++i) sum = sum + scalar(3 + i);
    const Val count = scalar(2) / k.constant(DType::F64, spec.attributes.real("share"));
    k.store(k.pointer(0, DType::F64), k.index(0), scalar(1) + count * sum);
  });
  return k.finish();
}

/// balance_scale {}   slots: out, count, mean; all f64. One task.
llvm::Function* emit_balance_scale(KernelBuilder& k, const ir::KernelSpec&) {
  const auto scalar = [&](int slot) { return k.load(k.pointer(slot, DType::F64)); };
  const Val one = k.constant(DType::F64, 1.0), none = k.constant(DType::F64, 0.0);
  k.for_tasks([&](Val) {
    const Val counts = k.select(scalar(1) > 0.0, one, none);
    k.store(k.pointer(0, DType::F64), k.index(0), k.select(scalar(2) == 0.0, scalar(1), counts));
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> balance_kernels() {
  return {{"balance_parts", emit_balance_parts},
          {"balance_sum", emit_balance_sum},
          {"balance_grad", emit_balance_grad},
          {"add_balance", emit_add_balance},
          {"balance_scale", emit_balance_scale}};
}

}  // namespace tfc::codegen
