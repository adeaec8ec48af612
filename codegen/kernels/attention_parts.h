// What the forward and backward attention kernels share: register tiles, transposition, blocks of visible
// keys.
//
// All matrices of a block are held so that vectors run over the queries of a tile: scores as [key, query],
// outputs as [e, query]. A query's row is one lane from beginning to end, so softmax needs no reduction
// across lanes, and what a row computes depends neither on the tile it is in nor on its neighbours.
#pragma once

#include "codegen/dropout.h"
#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

// As passes/lower/attention.cpp, which cuts tasks and sizes scratch.
inline constexpr int64_t kTileQueries = 32;  // width of every matrix over queries
inline constexpr int64_t kMostBlockKeys = 64;

/// Registers of a product tile: rows x 2 vectors, or x 1 where there are few queries.
struct AttentionTile {
  int rows, lanes;
  int64_t block_keys;  // keys that are softmaxed together: a multiple of the rows
};
AttentionTile attention_tile(const Target& target, ir::DType real);

/// C[rows, vectors] = start + sum over depth of left[row, d] * right[d, vector]; each element one chain of
/// fma over ascending d. A guard (if any) says for which lanes of a vector step d counts at all.
struct TileProduct {
  int rows, vectors, lanes;
  std::function<Val(Val d, int row)> left;  // scalar
  std::function<Val(Val d, int vector)> right;
  std::function<Val(int row, int vector)> start;  // absent: zeros
  std::function<Val(Val d, int vector)> guard;
  std::function<void(int row, int vector, Val sum)> finish;
};
void tile_product(KernelBuilder& k, const std::string& name, Val depth, int unroll, const TileProduct& tile);

/// Rows 0..count-1 in groups of nearly equal height, at most `most`.
void for_row_groups(KernelBuilder& k, int64_t count, int most,
                    const std::function<void(Val first, int height)>& body);

/// Columns 0..count-1 of a tile, two vectors at a time, one where no more are needed.
void for_columns(KernelBuilder& k, Val count, int lanes,
                 const std::function<void(Val first, int vectors)>& body);

/// to[e * kTileQueries + q] = factor * from[q * stride + e] for e < E (rounded up to whole vectors, with
/// zeros), q < count; columns past the last repeat it, up to a whole vector.
void transpose_in(KernelBuilder& k, Ptr to, Ptr from, Val stride, int64_t E, Val count, int lanes,
                  double factor);

/// to[q * stride + e] = factor(vector of q) * from[e * kTileQueries + q]; `rows` is scratch of [queries,
/// padded E].
void transpose_out(KernelBuilder& k, Ptr to, Val stride, Ptr from, Ptr rows, int64_t E, Val count, int lanes,
                   const std::function<Val(Val first, Val vector)>& factor);

inline int64_t padded(int64_t E) { return (E + kLanes - 1) / kLanes * kLanes; }

/// The visible keys of one block, as the matrices' rows: all of a range, or those that the key mask leaves.
struct KeyBlock {
  KernelBuilder& k;
  Val first, count;
  Ptr numbers;  // i64, where there is a mask
  bool masked;

  Val key(Val row) const { return masked ? k.load(numbers, row) : first + row; }
};
KeyBlock gather_keys(KernelBuilder& k, Val first, Val range, Ptr mask, Ptr numbers, bool masked);

/// Where a key's row is.
using KeyRows = std::function<Ptr(Val key)>;

/// to[row * E + e] = element e of key(row)
void pack_keys(KernelBuilder& k, const KeyBlock& block, Ptr to, const KeyRows& from, int64_t E);

/// to[e * kMostBlockKeys + row] = element e of key(row); rows past the last repeat it, up to a whole vector.
void transpose_keys(KernelBuilder& k, const KeyBlock& block, Ptr to, const KeyRows& from, int64_t E,
                    int lanes);

/// Dropout of softmax weights: the words that a tile's rows draw from, side by side.
struct WeightDropout {
  KernelBuilder& k;
  Dropout dropout;
  Ptr first, second;  // i32[kTileQueries] each
  Var drops;          // i1

  /// `words`: scratch for 2 * kTileQueries numbers of 32 bits.
  WeightDropout(KernelBuilder& builder, double p, Ptr words)
      : k(builder),
        dropout(builder, p),
        first{words.base, builder.ir().getInt32Ty()},
        second(builder.at(first, builder.index(kTileQueries))),
        drops(builder.var(builder.index(0) != 0)) {}

  /// The rows of a tile's queries, the first of which is row `row` of the keys; stream of place and head.
  void load(Ptr keys, Val row, Val queries, Val place, Val head) {
    const Val stream = dropout.stream(place, head);
    drops.set(dropout.row(keys, row, stream).drops);
    k.loop("dropout", queries, [&](Val i) {
      const DropoutRow words = dropout.row(keys, row + i, stream);
      k.store(first, i, words.first);
      k.store(second, i, words.second);
    });
  }

  /// Which of the weights of a key for some queries stay.
  Val keeps(Val key, Val query, int lanes) const {
    const DropoutRow rows{k.load_vector(first, query, lanes), k.load_vector(second, query, lanes), drops.get()};
    return dropout.keeps(rows, dropout.columns(key, 1));
  }
  /// Which of the weights of a query for some keys of the block stay.
  Val keeps(Val query, const KeyBlock& block, const Lane& lane) const {
    const DropoutRow row{k.load(first, query), k.load(second, query), drops.get()};
    if (!block.masked) return dropout.keeps(row, dropout.columns(block.first + lane.start, kLanes));
    return dropout.keeps(row, dropout.narrow(k.load(block.numbers, lane)));
  }
  Val scale() const { return dropout.scale({{}, {}, drops.get()}); }
};

llvm::Function* emit_attention_grad(KernelBuilder& k, const ir::KernelSpec& spec);
llvm::Function* emit_attention_weights(KernelBuilder& k, const ir::KernelSpec& spec);
llvm::Function* emit_sum_heads(KernelBuilder& k, const ir::KernelSpec& spec);
llvm::Function* emit_cache_append(KernelBuilder& k, const ir::KernelSpec& spec);

}  // namespace tfc::codegen
