// Mixtures of experts (Shazeer et al. 2017): the choice of experts, the way of tokens' rows to them and back.
// The experts' products are those of product.cpp. A row by expert belongs to one choice of one token, so that
// tasks of tokens write rows of their own. A token that is not routed, or a choice that no expert takes, has
// the number -1.
#include "codegen/dropout.h"
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

/// What the kernels here share: rows of tokens in chunks, a few choices each.
struct Tokens {
  KernelBuilder& k;
  const int64_t X, J, chunk;
  const Val D;  // width of rows; 0 where there are none

  Tokens(KernelBuilder& builder, const ir::KernelSpec& spec)
      : k(builder),
        X(spec.attributes.integer("experts", 0)),
        J(spec.attributes.integer("top_k", 1)),
        chunk(spec.attributes.integer("chunk", 1)),
        D(builder.index(spec.attributes.integer("width", 0))) {}

  void for_rows(Val task, Val rows, const std::function<void(Val row)>& body) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, rows), 1, body);
  }

  /// The chunk's share of the rows by expert that belong to no choice: zeros.
  void zero_rest(Val task, Val rows, Ptr starts, Ptr out, Val stride) {
    const Val used = number(starts, k.index(X));
    k.loop("rest", k.max(task * (chunk * J), used), k.min((task + 1) * chunk, rows) * J, 1,
           [&](Val row) { k.zero(k.at(out, row * stride), D); });
  }

  Val number(Ptr p, Val index) { return k.to_index(k.load(p, index)); }

  void store_number(Ptr p, Val index, Val value) {
    k.store(p, index, k.wrap(k.ir().CreateTrunc(value.raw(), k.ir().getInt32Ty())));
  }
};

/// exp(logit - greatest) and what they add up to: p = e(lane) / sum.
struct Softmax {
  KernelBuilder& k;
  Ptr logits;
  Val greatest, sum;

  Softmax(KernelBuilder& builder, Ptr row, int64_t X) : k(builder), logits(row) {
    greatest = k.maximum("greatest", k.index(X), [&](Lane e) { return k.load(logits, e); });
    sum = k.sum("sum", k.index(X), [&](Lane e) { return exp_nonpositive(k.load(logits, e) - greatest); });
  }
  Val at(Lane e) { return exp_nonpositive(k.load(logits, e) - greatest) / sum; }
};

/// The untaken expert of greatest logit, the first of equal ones, and its logit.
std::pair<Val, Val> best_expert(Tokens& t, Ptr logits, Ptr taken) {
  KernelBuilder& k = t.k;
  Var best = k.var(k.index(-1)), value = k.var(k.number(0.0));
  k.loop("expert", k.index(t.X), [&](Val e) {
    const Val logit = k.load(logits, e);
    const Val better = (t.number(taken, e) == 0) & ((best.get() < 0) | (logit > value.get()));
    best.set(k.select(better, e, best.get()));
    value.set(k.select(better, logit, value.get()));
  });
  return {best.get(), value.get()};
}

/// route {experts = X, top_k = J, renormalize, chunk}
/// slots: rows, weights, experts, logits, stride of logits, mask (or null). Scratch: X flags.
llvm::Function* emit_route(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const bool renormalize = spec.attributes.flag("renormalize");
  const Ptr experts = k.pointer(2, DType::I32), mask = k.pointer(5, DType::U8), taken = k.scratch(DType::I32);
  const Val J = k.index(t.J);
  k.for_tasks([&](Val task) {
    t.for_rows(task, k.integer(0), [&](Val row) {
      const Ptr weights = k.at(k.pointer(1), row * J), logits = k.at(k.pointer(3), row * k.integer(4));
      const Ptr chosen = k.at(experts, row * J);
      Var real = k.var(k.index(1));
      k.if_(!k.is_null(mask), [&] { real.set(k.to_index(k.load(mask, row))); });
      k.if_(
          real.get() != 0,
          [&] {
            k.loop("expert", k.index(t.X), [&](Val e) { t.store_number(taken, e, k.index(0)); });
            const Softmax softmax(k, logits, t.X);
            Var sum = k.var(renormalize ? k.number(0.0) : softmax.sum);
            k.loop("choice", J, [&](Val j) {
              const auto [expert, logit] = best_expert(t, logits, taken);
              t.store_number(taken, expert, k.index(1));
              t.store_number(chosen, j, expert);
              const Val weight = exp_nonpositive(logit - softmax.greatest);
              k.store(weights, j, weight);
              if (renormalize) sum.set(sum.get() + weight);
            });
            k.loop("weight", J, [&](Val j) { k.store(weights, j, k.load(weights, j) / sum.get()); });
          },
          [&] {
            k.loop("choice", J, [&](Val j) {
              t.store_number(chosen, j, k.index(-1));
              k.store(weights, j, k.number(0.0));
            });
          });
    });
  });
  return k.finish();
}

/// The choices that an expert takes, as a double; without a capacity more than there are.
Val most_choices(Tokens& t, Ptr experts, Val rows, double capacity) {
  KernelBuilder& k = t.k;
  if (capacity == 0) return k.to_double(rows + 1);
  Var tokens = k.var(k.index(0));
  k.loop("token", rows, [&](Val row) {
    tokens.set(tokens.get() + k.select(t.number(experts, row * t.J) >= 0, k.index(1), k.index(0)));
  });
  const Val share =
      k.to_double(tokens.get()) * capacity * static_cast<double>(t.J) / static_cast<double>(t.X);
  return -k.floor(-share);
}

/// route_places {experts = X, top_k = J, capacity}   slots: rows, positions, starts, experts
/// A counting sort by expert that keeps the order of tokens. One task.
llvm::Function* emit_route_places(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const Ptr positions = k.pointer(1, DType::I32), starts = k.pointer(2, DType::I32),
            experts = k.pointer(3, DType::I32);
  const Val choices = k.integer(0) * t.J;
  k.for_tasks([&](Val) {
    const Val most = most_choices(t, experts, k.integer(0), spec.attributes.real("capacity"));
    k.loop("zero", k.index(t.X + 1), [&](Val e) { t.store_number(starts, e, k.index(0)); });
    k.loop("count", choices, [&](Val i) {
      const Val expert = t.number(experts, i);
      t.store_number(positions, i, k.index(-1));
      k.if_(expert >= 0, [&] {
        const Val count = t.number(starts, expert + 1);
        k.if_(k.to_double(count) < most, [&] {
          t.store_number(positions, i, count);
          t.store_number(starts, expert + 1, count + 1);
        });
      });
    });
    k.loop("start", k.index(t.X),
           [&](Val e) { t.store_number(starts, e + 1, t.number(starts, e) + t.number(starts, e + 1)); });
    k.loop("place", choices, [&](Val i) {
      const Val place = t.number(positions, i);
      k.if_(place >= 0,
            [&] { t.store_number(positions, i, place + t.number(starts, t.number(experts, i))); });
    });
  });
  return k.finish();
}

/// route_grad {experts = X, top_k = J, renormalize, chunk}
/// slots: rows, dlogits, stride of dlogits, dweights, weights, experts, logits, stride of logits
llvm::Function* emit_route_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const bool renormalize = spec.attributes.flag("renormalize");
  const Val J = k.index(t.J), X = k.index(t.X);
  k.for_tasks([&](Val task) {
    t.for_rows(task, k.integer(0), [&](Val row) {
      const Ptr dlogits = k.at(k.pointer(1), row * k.integer(2)),
                chosen = k.at(k.pointer(5, DType::I32), row * J);
      const Ptr dweights = k.at(k.pointer(3), row * J), weights = k.at(k.pointer(4), row * J);
      k.zero(dlogits, X);
      k.if_(t.number(chosen, k.index(0)) >= 0, [&] {
        Var sum = k.var(k.number(0.0));
        k.loop("sum", J, [&](Val j) { sum.set(fma(k.load(weights, j), k.load(dweights, j), sum.get())); });
        if (!renormalize) {
          Softmax softmax(k, k.at(k.pointer(6), row * k.integer(7)), t.X);
          k.vector_loop("all", X, [&](Lane e) { k.store(dlogits, e, -(softmax.at(e) * sum.get())); });
        }
        k.loop("choice", J, [&](Val j) {
          const Val expert = t.number(chosen, j), weight = k.load(weights, j);
          const Val upstream = renormalize ? k.load(dweights, j) - sum.get() : k.load(dweights, j);
          k.store(dlogits, expert, fma(weight, upstream, k.load(dlogits, expert)));
        });
      });
    });
  });
  return k.finish();
}

/// dispatch {experts = X, top_k = J, width, chunk}   slots: rows, out, stride of out, x, stride of x,
/// positions, starts
llvm::Function* emit_dispatch(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const Ptr positions = k.pointer(5, DType::I32);
  k.for_tasks([&](Val task) {
    t.for_rows(task, k.integer(0), [&](Val row) {
      const Ptr x = k.at(k.pointer(3), row * k.integer(4));
      k.loop("choice", k.index(t.J), [&](Val j) {
        const Val place = t.number(positions, row * t.J + j);
        k.if_(place >= 0, [&] {
          const Ptr out = k.at(k.pointer(1), place * k.integer(2));
          k.vector_loop("copy", t.D, [&](Lane d) { k.store(out, d, k.load(x, d)); });
        });
      });
    });
    t.zero_rest(task, k.integer(0), k.pointer(6, DType::I32), k.pointer(1), k.integer(2));
  });
  return k.finish();
}

/// expert_keys {experts = X, top_k = J, width = 3, chunk}
/// slots: rows, out i32[rows*J,3], keys i32[rows,3], experts, positions, starts
llvm::Function* emit_expert_keys(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const Dropout dropout(k, 0);
  const Ptr out = k.pointer(1, DType::I32), keys = k.pointer(2, DType::I32), experts = k.pointer(3, DType::I32),
            positions = k.pointer(4, DType::I32);
  k.for_tasks([&](Val task) {
    t.for_rows(task, k.integer(0), [&](Val row) {
      k.loop("choice", k.index(t.J), [&](Val j) {
        const Val choice = row * t.J + j, place = t.number(positions, choice);
        k.if_(place >= 0, [&] {
          const DropoutRow own = dropout.row(keys, row, dropout.stream(k.index(0), t.number(experts, choice)));
          k.store(out, place * 3, own.first);
          k.store(out, place * 3 + 1, own.second);
          k.store(out, place * 3 + 2, k.load(keys, row * 3 + 2));
        });
      });
    });
    t.zero_rest(task, k.integer(0), k.pointer(5, DType::I32), out, k.index(3));
  });
  return k.finish();
}

/// combine {top_k = J, width, chunk}
/// slots: rows, out, stride of out, x, stride of x, positions, weights (or null: ones)
llvm::Function* emit_combine(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const Ptr positions = k.pointer(5, DType::I32), weights = k.pointer(6);
  k.for_tasks([&](Val task) {
    t.for_rows(task, k.integer(0), [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(2));
      k.zero(out, t.D);
      k.loop("choice", k.index(t.J), [&](Val j) {
        const Val choice = row * t.J + j, place = t.number(positions, choice);
        k.if_(place >= 0, [&] {
          Var weight = k.var(k.number(1.0));
          k.if_(!k.is_null(weights), [&] { weight.set(k.load(weights, choice)); });
          const Ptr x = k.at(k.pointer(3), place * k.integer(4));
          k.vector_loop("add", t.D,
                        [&](Lane d) { k.store(out, d, fma(weight.get(), k.load(x, d), k.load(out, d))); });
        });
      });
    });
  });
  return k.finish();
}

/// combine_grad {experts = X, top_k = J, width, chunk}
/// slots: rows, dx (or null), stride of dx, dweights (or null), dy, stride of dy, x, stride of x, positions,
/// weights, starts
llvm::Function* emit_combine_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  Tokens t(k, spec);
  const Ptr dx = k.pointer(1), dweights = k.pointer(3), positions = k.pointer(8, DType::I32);
  k.for_tasks([&](Val task) {
    t.for_rows(task, k.integer(0), [&](Val row) {
      const Ptr dy = k.at(k.pointer(4), row * k.integer(5));
      k.loop("choice", k.index(t.J), [&](Val j) {
        const Val choice = row * t.J + j, place = t.number(positions, choice);
        Var slope = k.var(k.number(0.0));
        k.if_(place >= 0, [&] {
          const Ptr x = k.at(k.pointer(6), place * k.integer(7));
          k.if_(!k.is_null(dweights),
                [&] { slope.set(k.sum("dot", t.D, [&](Lane d) { return k.load(dy, d) * k.load(x, d); })); });
          k.if_(!k.is_null(dx), [&] {
            const Ptr out = k.at(dx, place * k.integer(2));
            const Val weight = k.load(k.pointer(9), choice);
            k.vector_loop("scale", t.D, [&](Lane d) { k.store(out, d, k.load(dy, d) * weight); });
          });
        });
        k.if_(!k.is_null(dweights), [&] { k.store(dweights, choice, slope.get()); });
      });
    });
    k.if_(!k.is_null(dx),
          [&] { t.zero_rest(task, k.integer(0), k.pointer(10, DType::I32), dx, k.integer(2)); });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> expert_kernels() {
  return {{"route", emit_route},           {"route_places", emit_route_places},
          {"route_grad", emit_route_grad}, {"dispatch", emit_dispatch},
          {"expert_keys", emit_expert_keys},
          {"combine", emit_combine},       {"combine_grad", emit_combine_grad}};
}

}  // namespace tfc::codegen
