// Rows of keys, values or ids into the slots of a cache.
#include "codegen/kernels/attention_parts.h"

namespace tfc::codegen {

using ir::DType;

/// cache_append {width, chunk, ids, ring}   slots: rows B*T, cache, rows, offsets, mask (or null), T, C, stride of rows
/// Real row (b,t) goes to slot offsets[b] + t of the cache [B, C, width]; a slot past its end is nobody's. ring: slots
/// count round, and the row that is the last one to want a slot gets it. ids: of i32.
llvm::Function* emit_cache_append(KernelBuilder& k, const ir::KernelSpec& spec) {
  const bool ring = spec.attributes.flag("ring");
  const DType element = spec.attributes.flag("ids") ? DType::I32 : k.real();
  const Val width = k.index(spec.attributes.integer("width"));
  const int64_t chunk = spec.attributes.integer("chunk");
  const Val T = k.integer(5), C = k.integer(6);
  k.for_tasks([&](Val task) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const Val b = row / T, place = k.to_index(k.load(k.pointer(3, DType::I32), b)) + row % T;
      const Val slot = ring ? place % C : place;
      const Ptr mask = k.pointer(4, DType::U8);
      Var wanted = k.var(slot < C);
      k.if_(!k.is_null(mask), [&] { wanted.set(wanted.get() & (k.load(mask, row) != 0)); });
      if (ring) {
        k.if_(row % T + C < T, [&] {
          Var later = k.var(k.constant(DType::U8, 1));
          k.if_(!k.is_null(mask), [&] { later.set(k.load(mask, row + C)); });
          wanted.set(wanted.get() & (later.get() == 0));
        });
      }
      k.if_(wanted, [&] {
        const Ptr from = k.at(k.pointer(2, element), row * k.integer(7)),
                  to = k.at(k.pointer(1, element), (b * C + slot) * width);
        k.vector_loop("copy", width, [&](Lane lane) { k.store(to, lane, k.load(from, lane)); });
      });
    });
  });
  return k.finish();
}

}  // namespace tfc::codegen
