// Element by element, and what treats whole rows alike. Bound by memory: plain vector loops.
#include <optional>

#include "codegen/activations.h"
#include "codegen/dropout.h"
#include "codegen/kernels/kernels.h"
#include "ir/check.h"

namespace tfc::codegen {

namespace {

using ir::Attributes;
using ir::DType;

/// The function of an `elementwise` kernel at one vector of elements.
Val apply(KernelBuilder& k, const Attributes& a, const std::vector<Val>& x) {
  const std::string& op = a.text("op");
  if (op == "copy") return x[0];
  if (op == "add") return x[0] + x[1];
  if (op == "multiply") return x[0] * x[1];
  if (op == "scale") return x[0] * a.real("factor");
  if (op == "activation") return activate(a.text("kind"), x[0]);
  if (op == "activation_grad") return activation_gradient(a.text("kind"), x[0], x[1]);
  if (op == "gate") return activate(a.text("kind"), x[0]) * x[1];
  if (op == "gate_grad") return activation_gradient(a.text("kind"), x[0] * x[1], x[2]);
  TFC_CHECK(op == "residual", "no elementwise kernel is named '" + op + "'");
  Val sum = x[1];
  for (size_t i = 2; i < x.size(); ++i) sum = sum + x[i];
  return a.real("scale") == 1.0 ? x[0] + sum : x[0] + sum * a.real("scale");
}

/// elementwise {op, inputs, flat, chunk, width (rows only), dropout?}: out = op(in0, in1, ...)
/// slots: count (elements if flat, else rows), out, in0, in1, ..., then unless flat the strides of out, in0,
/// in1, ... A task is `chunk` elements or rows. With `dropout` (rows only) what comes out is dropped, by two more slots:
/// keys, place.
llvm::Function* emit_elementwise(KernelBuilder& k, const ir::KernelSpec& spec) {
  const Attributes& a = spec.attributes;
  const int inputs = static_cast<int>(a.integer("inputs"));
  const int64_t chunk = a.integer("chunk");
  const Val count = k.integer(0);
  std::optional<Dropout> dropout;
  if (a.has("dropout")) dropout.emplace(k, a.real("dropout"));
  const int keys_slot = 3 + 2 * inputs;
  auto at_lane = [&](const std::vector<Ptr>& in, Ptr out, Lane lane, const DropoutRow& keys) {
    std::vector<Val> x;
    for (Ptr p : in) x.push_back(k.load(p, lane));
    const Val y = apply(k, a, x);
    k.store(out, lane, dropout ? dropout->apply(keys, lane, y) : y);
  };
  k.for_tasks([&](Val task) {
    const Val first = task * chunk, last = k.min(first + chunk, count);
    std::vector<Ptr> in;
    if (a.flag("flat")) {
      for (int i = 0; i < inputs; ++i) in.push_back(k.pointer(2 + i));
      k.vector_loop("element", first, last, [&](Lane lane) { at_lane(in, k.pointer(1), lane, {}); });
      return;
    }
    const Val stream = dropout ? dropout->stream(k.integer(keys_slot + 1), k.index(0)) : Val();
    k.loop("row", first, last, 1, [&](Val row) {
      DropoutRow keys;
      if (dropout) keys = dropout->row(k.pointer(keys_slot, DType::I32), row, stream);
      std::vector<Ptr> rows;
      for (int i = 0; i <= inputs; ++i)
        rows.push_back(k.at(k.pointer(1 + i), row * k.integer(2 + inputs + i)));
      in.assign(rows.begin() + 1, rows.end());
      k.vector_loop("element", k.index(a.integer("width")), [&](Lane lane) { at_lane(in, rows[0], lane, keys); });
    });
  });
  return k.finish();
}

/// zeros {chunk}   slots: rows, out, width, stride, end: the element past the last row. A task is `chunk`
/// rows.
llvm::Function* emit_zeros(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  k.for_tasks([&](Val task) {
    const Val first = task * chunk, last = k.min(first + chunk, k.integer(0));
    k.loop("row", first, last, 1, [&](Val row) {
      const Val start = row * k.integer(3);
      k.zero(k.at(k.pointer(1), start), k.min(k.integer(2), k.integer(4) - start));
    });
  });
  return k.finish();
}

/// mask_rows {width, chunk}   slots: rows, out, x, mask, stride of out, of x
/// A masked row is zeros and is not read.
llvm::Function* emit_mask_rows(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  const Val width = k.index(spec.attributes.integer("width"));
  k.for_tasks([&](Val task) {
    const Val first = task * chunk, last = k.min(first + chunk, k.integer(0));
    k.loop("row", first, last, 1, [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(4)), x = k.at(k.pointer(2), row * k.integer(5));
      k.if_(
          k.load(k.pointer(3, DType::U8), row) != 0,
          [&] { k.vector_loop("element", width, [&](Lane lane) { k.store(out, lane, k.load(x, lane)); }); },
          [&] { k.zero(out, width); });
    });
  });
  return k.finish();
}

/// add_rows {width, chunk}   slots: rows B*T, out, x, added rows, T, strides of out, x, added rows
/// Row (b,t) of x plus row t: rows broadcast over the batch.
llvm::Function* emit_add_rows(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  k.for_tasks([&](Val task) {
    const Val first = task * chunk, last = k.min(first + chunk, k.integer(0));
    k.loop("row", first, last, 1, [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(5)), x = k.at(k.pointer(2), row * k.integer(6));
      const Ptr added = k.at(k.pointer(3), row % k.integer(4) * k.integer(7));
      k.vector_loop("element", k.index(spec.attributes.integer("width")),
                    [&](Lane lane) { k.store(out, lane, k.load(x, lane) + k.load(added, lane)); });
    });
  });
  return k.finish();
}

/// batch_sum {width, chunk}   slots: T, out, dy, B, strides of out, of dy
/// out[t] = sum over b, ascending, of dy[b,t]. A task is `chunk` rows t.
llvm::Function* emit_batch_sum(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  const Val tokens = k.integer(0);
  k.for_tasks([&](Val task) {
    const Val first = task * chunk, last = k.min(first + chunk, tokens);
    k.loop("row", first, last, 1, [&](Val t) {
      const Ptr out = k.at(k.pointer(1), t * k.integer(4));
      k.vector_loop("element", k.index(spec.attributes.integer("width")), [&](Lane lane) {
        Var sum = k.var(k.load(k.at(k.pointer(2), t * k.integer(5)), lane));
        k.loop("batch", k.index(1), k.integer(3), 1, [&](Val b) {
          sum.set(sum.get() + k.load(k.at(k.pointer(2), (b * tokens + t) * k.integer(5)), lane));
        });
        k.store(out, lane, sum);
      });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> elementwise_kernels() {
  return {{"elementwise", emit_elementwise},
          {"zeros", emit_zeros},
          {"mask_rows", emit_mask_rows},
          {"add_rows", emit_add_rows},
          {"batch_sum", emit_batch_sum}};
}

}  // namespace tfc::codegen
