// Attention forward, streaming: online softmax (Milakov & Gimelshein 2018, arXiv:1805.02867) by tiles, as in
// FlashAttention (Dao et al. 2022, arXiv:2205.14135). The scores never exist whole.
//
// A task is a tile of queries of one head. It walks blocks of keys from key 0 on; with m, l, o of the blocks
// so far:
//   s = scale q k^T      m' = max(m, max s)      a = exp(m - m')      p = exp(s - m')
//   l' = a l + sum p     o' = a o + p v          at the end  o / l,  lse = m + log l
// Dropout leaves out p v of some keys, and l as it is.
// Invisible keys get s = -inf and p = 0, and their v is not multiplied; masked keys are not even in the
// block. A block without visible keys leaves m' = m, a = 1 and l, o as they are, to the bit, so skipping it
// changes nothing: a row has the same bits alone, in any batch, with padding on its right, and decoded token
// by token.
//
// Few queries (decoding) would leave most lanes idle. They go one by one, with vectors over keys and over e;
// each element is the same chain of operations as in a tile.
#include <algorithm>
#include <limits>

#include "codegen/kernels/attention_streaming.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr int64_t kFewQueries = 4;

enum Slot { kQ, kK, kV, kMask, kOffsets, kO, kLse, kT, kS, kQStride, kKStride, kVStride, kOStride, kSlots };
enum RingSlot { kNewK, kNewV, kNewKStride, kNewVStride };  // after the sight's

struct AttentionEmitter : StreamingAttention {
  const bool ring, real_queries;
  const int ring_slot, dropout_slot;

  // scratch; values: of a block, where keys and values are rings
  Ptr qt, keys, st, ot, rows, m, l, values;

  AttentionEmitter(KernelBuilder& builder, const ir::Attributes& a)
      : StreamingAttention(builder, a),
        ring(a.flag("ring")),
        real_queries(a.flag("real_queries")),
        ring_slot(kSlots + (set.plain() ? 0 : kSightSlots)),
        dropout_slot(ring_slot + (ring ? 4 : 0)) {
    qt = take(padded(E) * kTileQueries);
    ot = take(padded(E) * kTileQueries);
    rows = take(padded(E) * kTileQueries);
    st = take(kMostBlockKeys * kTileQueries);
    keys = take(kMostBlockKeys * E);
    m = take(kTileQueries);
    l = take(kTileQueries);
    take_common(a);
    if (ring) values = take(kMostBlockKeys * E);
  }

  /// Row t of this batch and head, for keys and values of its group.
  Ptr key_rows(int slot, int stride_slot) {
    return k.at(k.pointer(slot), b * k.integer(kS) * k.integer(stride_slot) + group_of(head) * E);
  }

  /// The tile's rows of a matrix over queries.
  Ptr query_rows(int slot, int stride_slot) {
    return k.at(k.pointer(slot), (b * k.integer(kT) + q0) * k.integer(stride_slot) + head * E);
  }

  Val cached() { return k.to_index(k.load(k.pointer(kOffsets, DType::I32), b)); }

  /// Key s of a ring: at slot s mod S while it is from before this call, which brings the others. A block wraps
  /// round once at most.
  KeyRows ring_rows(const KeyBlock& block, int slot, int stride_slot, int fresh) {
    const Val S = k.integer(kS), old = cached(), turn = block.first - block.first % S;
    const Ptr from = key_rows(slot, stride_slot);
    const Val stride = k.integer(ring_slot + kNewKStride + fresh);
    const Ptr brought =
        k.at(k.pointer(ring_slot + kNewK + fresh), b * k.integer(kT) * stride + group_of(head) * E);
    return [=, this](Val key) {
      const Val place = key - turn, kept = k.select(place < S, place, place - S);
      const Ptr then = k.at(from, kept * k.integer(stride_slot)), now = k.at(brought, (key - old) * stride);
      return Ptr{k.ir().CreateSelect((key < old).raw(), then.base, now.base), then.element};
    };
  }
  KeyRows rows_of(const KeyBlock& block, int slot, int stride_slot) {
    if (ring) return ring_rows(block, slot, stride_slot, slot - kK);
    const Ptr from = key_rows(slot, stride_slot);
    return [=, this](Val key) { return k.at(from, key * k.integer(stride_slot)); };
  }

  /// The block's values: where they are, or packed.
  struct Values {
    Ptr base;
    Val stride;
  };
  Values values_of(const KeyBlock&) {
    if (ring) return {values, k.index(E)};
    return {key_rows(kV, kVStride), k.integer(kVStride)};
  }
  Val value_row(const KeyBlock& block, Val row) { return ring ? row : block.key(row); }

  Sight sight() {
    Sight sees(k, set, kSlots, marks);
    const Val S = k.integer(kS), T = k.integer(kT);
    Sight::Tile of{b, head, q0, queries, T, {}, {}, S};
    const Val old = offset ? cached() : Val{};
    if (sees.needs_own()) of.own = offset ? old + q0 : S - T + q0;
    of.end = offset ? old : S;
    if (ring) of.keys = old + T;
    sees.begin_tile(of);
    return sees;
  }

  void scores(const KeyBlock& block, const Sight& sees, Val count, Val first, int vectors) {
    k.loop("scores", k.index(0), count, tile.rows, [&](Val key) {
      TileProduct product{tile.rows, vectors, tile.lanes, {}, {}, {}, {}, {}};
      product.left = [&](Val e, int row) { return k.load(keys, (key + row) * E + e); };
      product.right = [&](Val e, int v) { return load(qt, e, first, v); };
      product.finish = [&](int row, int v, Val s) {
        s = sees.with_distance(s, key + row, first + v * tile.lanes, tile.lanes);
        if (set.partial()) {
          const Val seen = sees.lanes_see(block, key + row, first + v * tile.lanes, tile.lanes);
          s = k.select(seen, s, k.number(-kInfinity));
        }
        k.store(column(st, key + row, first, v), k.index(0), s);
      };
      tile_product(k, "qk", k.index(E), 2, product);
    });
  }

  /// 1 / l, and the factor of dropout, which is the same for all weights; a row that sees nothing gets zeros.
  Val normaliser(Val sum) {
    const Val inverse = 1.0 / sum;
    return k.select(sum == 0.0, k.number(0), drop ? inverse * drop->scale() : inverse);
  }

  /// The block's softmax weights in place of its scores, those that are dropped as zeros; returns a = exp(m - m') of each vector.
  std::vector<Val> weights(const KeyBlock& block, Val count, Val first, int vectors) {
    std::vector<Val> rescale;
    for (int v = 0; v < vectors; ++v) {
      const Val old = load(m, k.index(0), first, v);
      Var greatest = k.var(old);
      k.loop("max", count, [&](Val key) { greatest.set(k.max(greatest.get(), load(st, key, first, v))); });
      const Val now = greatest.get(), none = now == -kInfinity;
      const Val base = k.select(none, k.same_type_constant(now, 0.0), now);
      const Val a = exp_nonpositive(old - base);
      Var sum = k.var(load(l, k.index(0), first, v) * a);
      k.loop("exp", count, [&](Val key) {
        const Val p = exp_nonpositive(load(st, key, first, v) - base);
        sum.set(sum.get() + p);
        const Val query = first + v * tile.lanes;
        k.store(column(st, key, first, v), k.index(0),
                drop ? k.select(drop->keeps(block.key(key), query, tile.lanes), p, k.number(0)) : p);
      });
      k.store(column(m, k.index(0), first, v), k.index(0), now);
      k.store(column(l, k.index(0), first, v), k.index(0), sum);
      rescale.push_back(a);
    }
    return rescale;
  }

  /// o' = a o + p v over these rows of the block. With a guard where some lanes do not see all of them: what stands
  /// there may be NaN.
  void outputs(const KeyBlock& block, const Sight& sees, Range keys_of, Val first, const std::vector<Val>& rescale,
               bool guarded) {
    const Values from = values_of(block);
    for_row_groups(k, E, tile.rows, [&](Val e, int height) {
      TileProduct product{height, static_cast<int>(rescale.size()), tile.lanes, {}, {}, {}, {}, {}};
      product.left = [&](Val key, int row) {
        return k.load(from.base, value_row(block, keys_of.first + key) * from.stride + e + row);
      };
      product.right = [&](Val key, int v) { return load(st, keys_of.first + key, first, v); };
      product.start = [&](int row, int v) {
        return load(ot, e + row, first, v) * rescale[static_cast<size_t>(v)];
      };
      if (guarded) {
        product.guard = [&](Val key, int v) {
          return sees.lanes_see(block, keys_of.first + key, first + v * tile.lanes, tile.lanes);
        };
      }
      product.finish = [&](int row, int v, Val o) { k.store(column(ot, e + row, first, v), k.index(0), o); };
      tile_product(k, guarded ? "pv.guarded" : "pv", keys_of.size(), guarded ? 1 : 2, product);
    });
  }

  /// Rows that all lanes see, then the others.
  void outputs(const KeyBlock& block, const Sight& sees, Val count, Val first, Val last_query,
               std::vector<Val> rescale) {
    if (!set.partial()) return outputs(block, sees, {k.index(0), count}, first, rescale, false);
    const Val seen = sees.rows_all_see(block, count, first, last_query);
    k.if_(seen > 0, [&] { outputs(block, sees, {k.index(0), seen}, first, rescale, false); });
    for (Val& a : rescale) a = k.select(seen > 0, k.same_type_constant(a, 1.0), a);
    k.if_(seen < count, [&] { outputs(block, sees, {seen, count}, first, rescale, true); });
  }

  void block_columns(const KeyBlock& block, const Sight& sees, Val first, int vectors) {
    // Keys past the last query's limit are nobody's in these columns.
    const Val last_query = k.min(first + vectors * tile.lanes, queries) - 1;
    const Val count = sees.rows_in_sight(block, last_query);
    k.if_(count > 0, [&] {
      scores(block, sees, count, first, vectors);
      const std::vector<Val> rescale = weights(block, count, first, vectors);
      outputs(block, sees, count, first, last_query, rescale);
    });
  }

  void finish_rows() {
    const int64_t lanes = tile.lanes;
    k.loop("group", k.index(0), queries, lanes, [&](Val first) {
      const Val sum = load(l, k.index(0), first, 0), base = load(m, k.index(0), first, 0);
      k.store(column(m, k.index(0), first, 0), k.index(0), base + log(sum));
      k.store(column(l, k.index(0), first, 0), k.index(0), normaliser(sum));
    });
    transpose_out(k, query_rows(kO, kOStride), k.integer(kOStride), ot, rows, E, queries, tile.lanes,
                  [&](Val first, Val vector) { return vector * load(l, k.index(0), first, 0); });
    k.if_(!k.is_null(k.pointer(kLse)), [&] {
      const Ptr lse = k.at(k.pointer(kLse), (b * H + head) * k.integer(kT) + q0);
      k.vector_loop("lse", queries, [&](Lane q) { k.store(lse, q, k.load(m, q)); });
    });
  }

  void many_queries(Sight& sees, Ptr mask) {
    const Val q_stride = k.integer(kQStride);
    transpose_in(k, qt, query_rows(kQ, kQStride), q_stride, E, queries, tile.lanes, scale);
    k.zero(ot, k.index(padded(E) * kTileQueries));
    k.zero(l, k.index(kTileQueries));
    k.vector_loop("m", k.index(kTileQueries), [&](Lane lane) { k.store(m, lane, k.number(-kInfinity)); });
    for_blocks(sees, mask, [&](const KeyBlock& block) {
      pack_keys(k, block, keys, rows_of(block, kK, kKStride), E);
      if (ring) pack_keys(k, block, values, rows_of(block, kV, kVStride), E);
      for_columns(k, queries, tile.lanes,
                  [&](Val first, int vectors) { block_columns(block, sees, first, vectors); });
    });
    finish_rows();
  }

  // -- few queries: qt and ot hold rows [query, padded E], keys a block [e, key], st the weights of one row
  // ------------

  /// The scores of one query, four vectors of keys at a time.
  void row_scores(const Sight& sees, Val query, Val count) {
    const Ptr q = k.at(qt, query * padded(E));
    k.loop("scores", k.index(0), count, 4 * tile.lanes, [&](Val first) {
      TileProduct product{1, 4, tile.lanes, {}, {}, {}, {}, {}};
      product.left = [&](Val e, int) { return k.load(q, e); };
      product.right = [&](Val e, int v) {
        return k.load_vector(keys, e * kMostBlockKeys + first + v * tile.lanes, tile.lanes);
      };
      product.finish = [&](int, int v, Val s) {
        const Val row = first + v * tile.lanes;
        s = sees.with_distance_of_rows(s, row, query, tile.lanes);
        if (set.documents) s = k.select(sees.rows_in_document(row, query, tile.lanes), s, k.number(-kInfinity));
        k.store(st, row, s);
      };
      tile_product(k, "qk", k.index(E), 4, product);
    });
  }

  /// Rows of a block that one query sees: all from `from` on, or those of its document.
  struct RowsSeen {
    const KeyBlock& block;
    const Sight& sees;
    Val query, from, count;
  };

  /// o' = a o + p v for `vectors` vectors of e; the last one may be partial.
  void row_outputs(const RowsSeen& seen, Ptr o, Val a, int64_t first, int vectors) {
    const Values values_at = values_of(seen.block);
    TileProduct product{1, vectors, tile.lanes, {}, {}, {}, {}, {}};
    product.left = [&](Val key, int) { return k.load(st, seen.from + key); };
    product.right = [&](Val key, int v) {
      const int64_t e = first + v * tile.lanes;
      const Ptr row = k.at(values_at.base, value_row(seen.block, seen.from + key) * values_at.stride);
      if (e + tile.lanes <= E) return k.load_vector(row, k.index(e), tile.lanes);
      return k.load_vector(row, k.index(e), tile.lanes, k.first_lanes_mask(k.index(E - e), tile.lanes));
    };
    product.start = [&](int, int v) {
      return k.load_vector(o, k.index(first + v * tile.lanes), tile.lanes) * a;
    };
    product.finish = [&](int, int v, Val sum) { k.store(o, k.index(first + v * tile.lanes), sum); };
    if (set.documents) {
      product.guard = [&](Val key, int) {
        return k.splat(seen.sees.rows_in_document(seen.from + key, seen.query, 1), tile.lanes);
      };
    }
    tile_product(k, "pv", seen.count, 2, product);
  }

  void row_block(const KeyBlock& block, const Sight& sees, Val query) {
    const Val end = masked ? block.count : k.min(block.count, sees.limit(query) - block.first);
    const Val from = set.window > 0 ? k.max(sees.begin(query) - block.first, k.index(0)) : k.index(0);
    const RowsSeen seen{block, sees, query, from, end - from};
    k.if_(seen.count > 0, [&] {
      const Ptr o = k.at(ot, query * padded(E)), p = k.at(st, from);
      row_scores(sees, query, end);
      const Val old = k.load(m, query);
      const Val now = k.max(old, k.maximum("max", seen.count, [&](Lane key) { return k.load(p, key); }));
      const Val base = k.select(now == -kInfinity, k.number(0), now), a = exp_nonpositive(old - base);
      k.vector_loop("exp", seen.count,
                    [&](Lane key) { k.store(p, key, exp_nonpositive(k.load(p, key) - base)); });
      Var sum = k.var(k.load(l, query) * a);
      k.loop("sum", seen.count, [&](Val key) { sum.set(sum.get() + k.load(p, key)); });
      if (drop) {
        k.vector_loop("drop", seen.count, [&](Lane key) {
          const Lane row{from + key.start, key.mask};
          k.store(p, key, k.select(drop->keeps(query, block, row), k.load(p, key), k.number(0)));
        });
      }
      k.store(m, query, now);
      k.store(l, query, sum);
      const int64_t vectors = (E + tile.lanes - 1) / tile.lanes;
      for (int64_t v = 0; v < vectors; v += 8) {
        row_outputs(seen, o, a, v * tile.lanes, static_cast<int>(std::min<int64_t>(8, vectors - v)));
      }
    });
  }

  void few_queries(Sight& sees, Ptr mask) {
    const Ptr q = query_rows(kQ, kQStride), o = query_rows(kO, kOStride);
    k.zero(ot, queries * padded(E));
    k.loop("query", queries, [&](Val i) {
      const Ptr from = k.at(q, i * k.integer(kQStride)), to = k.at(qt, i * padded(E));
      k.vector_loop("e", k.index(E), [&](Lane e) { k.store(to, e, k.load(from, e) * scale); });
      k.store(m, i, k.number(-kInfinity));
      k.store(l, i, k.number(0));
    });
    for_blocks(sees, mask, [&](const KeyBlock& block) {
      k.if_(block.count > 0, [&] {
        transpose_keys(k, block, keys, rows_of(block, kK, kKStride), E, tile.lanes);
        if (ring) pack_keys(k, block, values, rows_of(block, kV, kVStride), E);
        k.loop("query", queries, [&](Val i) { row_block(block, sees, i); });
      });
    });
    k.loop("query", queries, [&](Val i) {
      const Val sum = k.load(l, i), inverse = normaliser(sum);
      const Ptr from = k.at(ot, i * padded(E)), to = k.at(o, i * k.integer(kOStride));
      k.vector_loop("e", k.index(E), [&](Lane e) { k.store(to, e, k.load(from, e) * inverse); });
      k.if_(!k.is_null(k.pointer(kLse)), [&] {
        k.store(k.pointer(kLse), (b * H + head) * k.integer(kT) + q0 + i, k.load(m, i) + log(sum));
      });
    });
  }

  void for_blocks(Sight& sees, Ptr mask, const std::function<void(const KeyBlock&)>& body) {
    const Val end = sees.limit(queries - 1);
    k.loop("block", sees.first_block(tile.block_keys), end, tile.block_keys, [&](Val first) {
      const Val range = k.min(end - first, k.index(tile.block_keys));
      const KeyBlock block = gather_keys(k, first, range, mask, numbers, masked);
      sees.in_block(block, [&] { body(block); });
    });
  }

  void task(Val number) {
    const Val tiles = (k.integer(kT) + (kTileQueries - 1)) / kTileQueries;
    q0 = number % tiles * kTileQueries;
    head = number / tiles % H;
    b = number / (tiles * H);
    queries = k.min(k.integer(kT) - q0, k.index(kTileQueries));
    if (!real_queries) return tile_of_queries();
    const Ptr mask = k.at(k.pointer(dropout_slot + (drop ? 2 : 0), DType::U8), b * k.integer(kT) + q0);
    Var any = k.var(k.constant(DType::U8, 0));
    k.loop("any", queries, [&](Val query) { any.set(any.get() | k.load(mask, query)); });
    k.if_(any.get() != 0, [&] { tile_of_queries(); });
  }

  void tile_of_queries() {
    if (drop) {
      drop->load(k.pointer(dropout_slot, DType::I32), b * k.integer(kT) + q0, queries, k.integer(dropout_slot + 1),
                 head);
    }
    Sight sees = sight();
    const Ptr mask = masked ? k.at(k.pointer(kMask, DType::U8), b * k.integer(kS)) : Ptr{};
    if (set.interval() && masked) return many_queries(sees, mask);  // a row's keys are not a range of its block's
    k.if_(
        queries <= kFewQueries, [&] { few_queries(sees, mask); }, [&] { many_queries(sees, mask); });
  }
};

/// attention {heads, kv_heads, head_dim, scale, causal, mask, offsets; window, after, prefix, documents, alibi,
/// positions; ring; dropout?; real_queries}
/// slots: q, k, v, key mask, offsets, o, lse (or null), T, S, strides of q, k, v, o; unless the sight is plain
/// SightSlots; ring: new k, new v and their strides; dropout: keys, place; real_queries: u8 [B,T],
/// tiles without a 1 are left alone. tasks = B * H * tiles of T.
llvm::Function* emit_attention(KernelBuilder& k, const ir::KernelSpec& spec) {
  AttentionEmitter emitter(k, spec.attributes);
  k.for_tasks([&](Val task) { emitter.task(task); });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> attention_kernels() {
  return {{"attention", emit_attention},
          {"attention_grad", emit_attention_grad},
          {"attention_weights", emit_attention_weights},
          {"sum_heads", emit_sum_heads},
          {"cache_append", emit_cache_append}};
}

}  // namespace tfc::codegen
