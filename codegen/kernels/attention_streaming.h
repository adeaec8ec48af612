// What the emitters of streaming attention have in common, forward and backward: their scratch and their tile.
#pragma once

#include <optional>

#include "codegen/kernels/attention_sight.h"

namespace tfc::codegen {

struct StreamingAttention : AttentionSettings {
  KernelBuilder& k;
  const AttentionTile tile;
  std::optional<WeightDropout> drop;
  Ptr numbers, marks;        // scratch: of a block's keys, of the sight
  Val b, head, q0, queries;  // the current tile

  StreamingAttention(KernelBuilder& builder, const ir::Attributes& a)
      : AttentionSettings(a), k(builder), tile(attention_tile(k.target(), k.real())), next_(k.scratch(k.real())) {}

  /// The scratch's next piece, in whole vectors.
  Ptr take(int64_t elements) {
    const Ptr piece = next_;
    next_ = k.at(next_, k.index(padded(elements)));
    return piece;
  }
  Ptr take_integers(int64_t count, unsigned bits) {
    return {take(count * (bits / 8) / ir::dtype_bytes(k.real())).base, k.ir().getIntNTy(bits)};
  }
  /// What every kernel has, after its own.
  void take_common(const ir::Attributes& a) {
    numbers = take_integers(kMostBlockKeys, 64);
    if (a.has("dropout")) drop.emplace(k, a.real("dropout"), take(2 * kTileQueries));
    if (set.marks()) marks = take_integers(kSightMarks, 32);
  }

  /// Of a matrix over queries.
  Ptr column(Ptr matrix, Val row, Val first, int vector) {
    return k.at(matrix, row * kTileQueries + first + vector * tile.lanes);
  }
  Val load(Ptr matrix, Val row, Val first, int vector) {
    return k.load_vector(column(matrix, row, first, vector), k.index(0), tile.lanes);
  }

 private:
  Ptr next_;
};

}  // namespace tfc::codegen
