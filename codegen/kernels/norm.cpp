// Layer normalisation (Ba, Kiros, Hinton 2016) and root mean square normalisation (Zhang, Sennrich 2019), by
// rows of width D. The variance takes a second sweep over the row, which is in cache by then: E[x^2] - E[x]^2
// cancels.
#include <optional>

#include "codegen/dropout.h"
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

struct NormSettings {
  bool centred;  // layer norm
  int64_t D, chunk;

  explicit NormSettings(const ir::KernelSpec& spec)
      : centred(spec.attributes.text("kind") == "layer"),
        D(spec.attributes.integer("width")),
        chunk(spec.attributes.integer("chunk")) {}
};

void for_rows_of_task(KernelBuilder& k, Val task, int64_t chunk, Val rows,
                      const std::function<void(Val row)>& body) {
  k.loop("row", task * chunk, k.min((task + 1) * chunk, rows), 1, body);
}

void store_unless_null(KernelBuilder& k, int slot, Val index, Val value) {
  k.if_(!k.is_null(k.pointer(slot)), [&] { k.store(k.pointer(slot), index, value); });
}

/// Dropout of rows, by a setting and two slots, where the spec has the setting.
class RowDropout {
 public:
  RowDropout(KernelBuilder& k, const ir::KernelSpec& spec, const std::string& setting, int& slot) : k_(k) {
    if (!spec.attributes.has(setting)) return;
    dropout_.emplace(k, spec.attributes.real(setting));
    keys_ = slot;
    slot += 2;
  }
  void begin(Val row) {
    if (!dropout_) return;
    const Val stream = dropout_->stream(k_.integer(keys_ + 1), k_.index(0));
    row_ = dropout_->row(k_.pointer(keys_, ir::DType::I32), row, stream);
  }
  Val apply(const Lane& lane, Val x) const { return dropout_ ? dropout_->apply(row_, lane, x) : x; }
  bool drops() const { return dropout_.has_value(); }

 private:
  KernelBuilder& k_;
  std::optional<Dropout> dropout_;
  int keys_ = 0;
  DropoutRow row_;
};

/// norm {kind = layer | rms, width = D, eps, bias, chunk, added, scale, dropout0?, dropout1?, ...}
/// slots: rows, y, x, gamma, beta, mean, rstd, strides of y, of x; with added = n > 0 also sum, its stride,
/// and for each of n operands pointer and stride: then sum = x + scale * (their sum, left to right) is stored
/// and normalised. mean and rstd may be null. Operand i is dropped with probability dropout{i}, by keys and place, two
/// slots at the end for each that is. mask: and last u8 by row, 0 where it is left alone.
llvm::Function* emit_norm(KernelBuilder& k, const ir::KernelSpec& spec) {
  const NormSettings s(spec);
  const int added = static_cast<int>(spec.attributes.integer("added", 0));
  const double eps = spec.attributes.real("eps"), scale = spec.attributes.real("scale", 1.0);
  const bool bias = spec.attributes.flag("bias");
  const Val D = k.index(s.D);
  const Ptr gamma = k.pointer(3), beta = k.pointer(4);

  std::vector<RowDropout> dropouts;
  int after_terms = 11 + 2 * added;
  for (int i = 0; i < added; ++i)
    dropouts.emplace_back(k, spec, "dropout" + std::to_string(i), after_terms);

  auto add_residual = [&](Val row, Ptr x) {
    for (RowDropout& dropout : dropouts) dropout.begin(row);
    const Ptr sum = k.at(k.pointer(9), row * k.integer(10));
    k.vector_loop("residual", D, [&](Lane d) {
      Val others;
      for (int i = 0; i < added; ++i) {
        const Val term = k.load(k.at(k.pointer(11 + 2 * i), row * k.integer(12 + 2 * i)), d);
        const Val other = dropouts[static_cast<size_t>(i)].apply(d, term);
        others = others ? others + other : other;
      }
      k.store(sum, d, k.load(x, d) + (scale == 1.0 ? others : others * scale));
    });
    return sum;
  };

  k.for_tasks([&](Val task) {
    const auto normalise = [&](Val row) {
      Ptr x = k.at(k.pointer(2), row * k.integer(8));
      const Ptr y = k.at(k.pointer(1), row * k.integer(7));
      if (added > 0) x = add_residual(row, x);
      const double size = static_cast<double>(s.D);
      const Val mean =
          s.centred ? k.sum("mean", D, [&](Lane d) { return k.load(x, d); }) / size : k.number(0);
      const Val variance = k.sum("variance", D, [&](Lane d) { return square(k.load(x, d) - mean); }) / size;
      const Val rstd = rsqrt(variance + eps);
      k.vector_loop("normalise", D, [&](Lane d) {
        const Val n = (k.load(x, d) - mean) * rstd;
        k.store(y, d, bias ? fma(n, k.load(gamma, d), k.load(beta, d)) : n * k.load(gamma, d));
      });
      if (s.centred) store_unless_null(k, 5, row, mean);
      store_unless_null(k, 6, row, rstd);
    };
    for_rows_of_task(k, task, s.chunk, k.integer(0), [&](Val row) {
      if (!spec.attributes.flag("mask")) return normalise(row);
      const Ptr mask = k.pointer(added > 0 ? after_terms : 9, ir::DType::U8);
      k.if_(k.load(mask, row) != 0, [&] { normalise(row); });
    });
  });
  return k.finish();
}

/// norm_grad {kind, width = D, chunk, dx, parameters, added, dropout?}
/// slots: rows, dx, dy, x, gamma, mean, rstd, partial sums [tasks, 2, D], strides of dx, dy, x; with `added`
/// also what dx is added to, and its stride. With n = (x - mean) * rstd and dn = dy * gamma:
///   dgamma = sum dy * n     dbeta = sum dy     dx = (dn - mean(dn) - n * mean(dn * n)) * rstd
/// and mean(dn) is missing where nothing was centred. With `dropout` dx is stored a second time, dropped, by four more
/// slots: where, its stride, keys, place. Each task leaves its rows' dgamma and dbeta in its own
/// place.
llvm::Function* emit_norm_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  const NormSettings s(spec);
  const bool wants_dx = spec.attributes.flag("dx"), wants_parameters = spec.attributes.flag("parameters");
  const bool added = spec.attributes.flag("added");
  const int dropped = added ? 13 : 11;
  int keys = dropped + 2;
  RowDropout dropout(k, spec, "dropout", keys);
  const Val D = k.index(s.D);
  const Ptr gamma = k.pointer(4);

  k.for_tasks([&](Val task) {
    const Ptr dgamma = k.at(k.pointer(7), task * (2 * s.D)), dbeta = k.at(dgamma, D);
    if (wants_parameters) k.zero(dgamma, 2 * D);
    for_rows_of_task(k, task, s.chunk, k.integer(0), [&](Val row) {
      const Ptr dx = k.at(k.pointer(1), row * k.integer(8)), dy = k.at(k.pointer(2), row * k.integer(9)),
                x = k.at(k.pointer(3), row * k.integer(10));
      const Val mean = s.centred ? k.load(k.pointer(5), row) : k.number(0), rstd = k.load(k.pointer(6), row);
      const Val none = k.splat(k.number(0));
      Var sum_dn = k.var(none), sum_dn_n = k.var(none);  // masked lanes add zeros: dy and gamma are 0 there
      auto normal = [&](Lane d) { return (k.load(x, d) - mean) * rstd; };
      k.vector_loop("sums", D, [&](Lane d) {
        const Val n = normal(d), g = k.load(dy, d), dn = g * k.load(gamma, d);
        if (wants_parameters) {
          k.store(dgamma, d, fma(g, n, k.load(dgamma, d)));
          k.store(dbeta, d, k.load(dbeta, d) + g);
        }
        sum_dn.set(sum_dn.get() + dn);
        sum_dn_n.set(fma(dn, n, sum_dn_n));
      });
      if (!wants_dx && !dropout.drops()) return;
      dropout.begin(row);
      const double size = static_cast<double>(s.D);
      const Val mean_dn = s.centred ? k.reduce_add(sum_dn) / size : k.number(0);
      const Val mean_dn_n = k.reduce_add(sum_dn_n) / size;
      k.vector_loop("dx", D, [&](Lane d) {
        const Val dn = k.load(dy, d) * k.load(gamma, d);
        const Val own = (dn - mean_dn - normal(d) * mean_dn_n) * rstd;
        const Val all = added ? k.load(k.at(k.pointer(11), row * k.integer(12)), d) + own : own;
        if (wants_dx) k.store(dx, d, all);
        if (dropout.drops())
          k.store(k.at(k.pointer(dropped), row * k.integer(dropped + 1)), d, dropout.apply(d, all));
      });
    });
  });
  return k.finish();
}

/// sum_partials {columns}   slots: count, out, partial sums, width, stride from one to the next
/// out = the partial sums added in order. A task is `columns` columns.
llvm::Function* emit_sum_partials(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t columns = spec.attributes.integer("columns");
  k.for_tasks([&](Val task) {
    k.vector_loop("column", task * columns, k.min((task + 1) * columns, k.integer(3)), [&](Lane d) {
      Var sum = k.var(k.load(k.pointer(2), d));
      k.loop("partial", k.index(1), k.integer(0), 1,
             [&](Val i) { sum.set(sum.get() + k.load(k.at(k.pointer(2), i * k.integer(4)), d)); });
      k.store(k.pointer(1), d, sum);
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> norm_kernels() {
  return {{"norm", emit_norm}, {"norm_grad", emit_norm_grad}, {"sum_partials", emit_sum_partials}};
}

}  // namespace tfc::codegen
