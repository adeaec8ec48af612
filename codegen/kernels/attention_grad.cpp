// Attention's gradients from the saved log-sums (Dao et al. 2022). Per row, with D = sum_e do * o:
//   p = exp(scale q k - lse)    dv = sum_t p do    ds = scale p (do v - D)    dq = sum_s ds k    dk = sum_t
//   ds q
// With dropout dv has m p in place of p, and ds m do v in place of do v: m = 0 or 1 / (1 - rate), drawn again.
// One pass: a task is a key head of one sequence; it walks its query heads and their tiles of queries, and
// for each the blocks of visible keys, so that scores are computed once and dk, dv are added up in one order.
// Blocks and tiles are those of the forward kernel. Invisible keys are not read and get zeros.
#include <limits>
#include <tuple>

#include "codegen/kernels/attention_streaming.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum Slot {
  kDo,
  kQ,
  kK,
  kV,
  kO,
  kLse,
  kMask,
  kDq,
  kDk,
  kDv,
  kT,
  kS,
  kDoStride,
  kQStride,
  kKStride,
  kVStride,
  kOStride,
  kDqStride,
  kDkStride,
  kDvStride,
  kSlots
};

struct AttentionGradEmitter : StreamingAttention {
  const int64_t width;  // E padded to whole vectors
  const bool apart;

  // scratch: [e, query], [query, e], [key, e], [key, query], [query]
  Ptr qt, dot, dqt, q_rows, do_rows, rows, keys, values, products, pt, dst, lse, means;
  Val group;  // of the current task

  AttentionGradEmitter(KernelBuilder& builder, const ir::Attributes& a)
      : StreamingAttention(builder, a),
        width(padded(E)),
        apart(a.flag("apart")) {
    for (Ptr* p : {&qt, &dot, &dqt, &q_rows, &do_rows, &rows}) *p = take(width * kTileQueries);
    for (Ptr* p : {&keys, &values, &products}) *p = take(kMostBlockKeys * width);
    for (Ptr* p : {&pt, &dst}) *p = take(kMostBlockKeys * kTileQueries);
    for (Ptr* p : {&lse, &means}) *p = take(kTileQueries);
    take_common(a);
  }

  /// The tile's queries in a matrix [B, T, H * E].
  Ptr query_rows(int slot, int stride_slot) {
    return k.at(k.pointer(slot), (b * k.integer(kT) + q0) * k.integer(stride_slot) + head * E);
  }
  Ptr key_rows(int slot, int stride_slot) {
    return k.at(k.pointer(slot), b * k.integer(kS) * k.integer(stride_slot) + group * E);
  }
  /// Where the task adds up its dk or dv.
  Ptr gradient_rows(int slot, int stride_slot) {
    const Val column = (apart ? head : group) * E;
    return k.at(k.pointer(slot), b * k.integer(kS) * k.integer(stride_slot) + column);
  }
  void copy_padded(Ptr to, Ptr from) {
    if (width > E) k.zero(to, k.index(width));
    k.vector_loop("copy", k.index(E), [&](Lane e) { k.store(to, e, k.load(from, e)); });
  }

  /// The tile's rows of q and do, and D. A row without visible keys is zeros and gets lse = inf, so that its
  /// p are 0.
  void load_queries() {
    const Ptr q = query_rows(kQ, kQStride), dout = query_rows(kDo, kDoStride), o = query_rows(kO, kOStride);
    const Ptr sums = k.at(k.pointer(kLse), (b * H + head) * k.integer(kT) + q0);
    k.vector_loop("no_rows", k.index(kTileQueries), [&](Lane lane) {
      k.store(lse, lane, k.number(kInfinity));
      k.store(means, lane, k.number(0));
    });
    k.loop("query", queries, [&](Val i) {
      const Val log_sum = k.load(sums, i);
      const Ptr q_row = k.at(q_rows, i * width), do_row = k.at(do_rows, i * width);
      k.if_(
          log_sum != -kInfinity,
          [&] {
            copy_padded(q_row, k.at(q, i * k.integer(kQStride)));
            copy_padded(do_row, k.at(dout, i * k.integer(kDoStride)));
            const Ptr o_row = k.at(o, i * k.integer(kOStride));
            k.store(lse, i, log_sum);
            k.store(means, i,
                    k.sum("mean", k.index(E), [&](Lane e) { return k.load(do_row, e) * k.load(o_row, e); }));
          },
          [&] {
            k.zero(q_row, k.index(width));
            k.zero(do_row, k.index(width));
          });
    });
    transpose_in(k, qt, q_rows, k.index(width), E, queries, tile.lanes, scale);
    transpose_in(k, dot, do_rows, k.index(width), E, queries, tile.lanes, 1.0);
    k.zero(dqt, k.index(width * kTileQueries));
  }

  /// to[key, query] = sum_e left[key, e] * right[e, query]
  void by_keys(const char* name, Ptr to, Ptr left, Ptr right, Val count, Val first, int vectors) {
    k.loop("keys", k.index(0), count, tile.rows, [&](Val key) {
      TileProduct product{tile.rows, vectors, tile.lanes, {}, {}, {}, {}, {}};
      product.left = [&](Val e, int row) { return k.load(left, (key + row) * E + e); };
      product.right = [&](Val e, int v) { return load(right, e, first, v); };
      product.finish = [&](int row, int v, Val sum) {
        k.store(column(to, key + row, first, v), k.index(0), sum);
      };
      tile_product(k, name, k.index(E), 2, product);
    });
  }

  /// p in place of the scores, as dropout left it, and ds in place of do v.
  void weights(const KeyBlock& block, const Sight& sees, Val count, Val first, int vectors) {
    for (int v = 0; v < vectors; ++v) {
      const Val log_sum = load(lse, k.index(0), first, v), mean = load(means, k.index(0), first, v);
      k.loop("exp", count, [&](Val key) {
        const Val query = first + v * tile.lanes;
        Val s = sees.with_distance(load(pt, key, first, v), key, query, tile.lanes);
        Val dp = load(dst, key, first, v), keeps;
        if (drop) {
          keeps = drop->keeps(block.key(key), query, tile.lanes);
          dp = k.select(keeps, dp * drop->scale(), k.number(0));
        }
        Val slope = dp - mean;
        if (set.partial()) {
          const Val seen = sees.lanes_see(block, key, query, tile.lanes);
          s = k.select(seen, s, k.number(-kInfinity));
          slope = k.select(seen, slope, k.number(0));
        }
        const Val p = exp_nonpositive(s - log_sum);
        k.store(column(pt, key, first, v), k.index(0),
                drop ? k.select(keeps, p * drop->scale(), k.number(0)) : p);
        k.store(column(dst, key, first, v), k.index(0), p * slope * scale);
      });
    }
  }

  /// dq += ds k, as [e, query], over these rows of the block.
  void add_dq(const KeyBlock& block, const Sight& sees, Range keys_of, Val first, int vectors, bool guarded) {
    for_row_groups(k, E, tile.rows, [&](Val e, int height) {
      TileProduct product{height, vectors, tile.lanes, {}, {}, {}, {}, {}};
      product.left = [&](Val key, int row) { return k.load(keys, (keys_of.first + key) * E + e + row); };
      product.right = [&](Val key, int v) { return load(dst, keys_of.first + key, first, v); };
      product.start = [&](int row, int v) { return load(dqt, e + row, first, v); };
      if (guarded) {
        product.guard = [&](Val key, int v) {
          return sees.lanes_see(block, keys_of.first + key, first + v * tile.lanes, tile.lanes);
        };
      }
      product.finish = [&](int row, int v, Val sum) {
        k.store(column(dqt, e + row, first, v), k.index(0), sum);
      };
      tile_product(k, guarded ? "dq.guarded" : "dq", keys_of.size(), guarded ? 1 : 2, product);
    });
  }

  /// to[key(row), e] += sum_q left[row, q] * right[q, e]
  void add_by_keys(const char* name, int slot, int stride_slot, const KeyBlock& block, Ptr left, Ptr right) {
    for_columns(k, k.index(width), tile.lanes, [&](Val e, int vectors) {
      k.loop("keys", k.index(0), block.count, tile.rows, [&](Val key) {
        TileProduct product{tile.rows, vectors, tile.lanes, {}, {}, {}, {}, {}};
        product.left = [&](Val q, int row) { return k.load(left, (key + row) * kTileQueries + q); };
        product.right = [&](Val q, int v) {
          return k.load_vector(right, q * width + e + v * tile.lanes, tile.lanes);
        };
        product.finish = [&](int row, int v, Val sum) {
          k.store(products, (key + row) * width + e + v * tile.lanes, sum);
        };
        tile_product(k, name, queries, 2, product);
      });
    });
    const Ptr to = gradient_rows(slot, stride_slot);
    k.loop("add", block.count, [&](Val row) {
      const Ptr target = k.at(to, block.key(row) * k.integer(stride_slot)),
                source = k.at(products, row * width);
      k.vector_loop("e", k.index(E),
                    [&](Lane e) { k.store(target, e, k.load(target, e) + k.load(source, e)); });
    });
  }

  void block_columns(const KeyBlock& block, const Sight& sees, Val first, int vectors) {
    // Keys past the last query's limit are nobody's in these columns: their weights are zeros.
    const Val last_query = k.min(first + vectors * tile.lanes, queries) - 1;
    const Val count = sees.rows_in_sight(block, last_query);
    by_keys("qk", pt, keys, qt, count, first, vectors);
    by_keys("dov", dst, values, dot, count, first, vectors);
    weights(block, sees, count, first, vectors);
    if (set.interval()) zero_weights(count, block.count, first, vectors);
    if (!set.partial()) return add_dq(block, sees, {k.index(0), count}, first, vectors, false);
    k.if_(count > 0, [&] {
      const Val seen = sees.rows_all_see(block, count, first, last_query);
      k.if_(seen > 0, [&] { add_dq(block, sees, {k.index(0), seen}, first, vectors, false); });
      k.if_(seen < count, [&] { add_dq(block, sees, {seen, count}, first, vectors, true); });
    });
  }

  void zero_weights(Val from, Val to, Val first, int vectors) {
    k.loop("zero", from, to, 1, [&](Val key) {
      for (const Ptr matrix : {pt, dst}) {
        for (int v = 0; v < vectors; ++v)
          k.store(column(matrix, key, first, v), k.index(0), k.splat(k.number(0), tile.lanes));
      }
    });
  }

  void key_block(const KeyBlock& block, const Sight& sees) {
    for (auto [to, slot, stride] : {std::tuple(keys, kK, kKStride), std::tuple(values, kV, kVStride)}) {
      const Ptr from = key_rows(slot, stride);
      const Val step = k.integer(stride);
      pack_keys(k, block, to, [&](Val key) { return k.at(from, key * step); }, E);
    }
    for_columns(k, queries, tile.lanes,
                [&](Val first, int vectors) { block_columns(block, sees, first, vectors); });
    add_by_keys("dv", kDv, kDvStride, block, pt, do_rows);
    add_by_keys("dk", kDk, kDkStride, block, dst, q_rows);
  }

  void query_tile(Ptr mask) {
    const Val S = k.integer(kS);
    load_queries();
    if (drop) {
      const int slot = kSlots + (set.plain() ? 0 : kSightSlots);
      drop->load(k.pointer(slot, DType::I32), b * k.integer(kT) + q0, queries, k.integer(slot + 1), head);
    }
    Sight sees(k, set, kSlots, marks);
    const Val T = k.integer(kT);
    sees.begin_tile({b, head, q0, queries, T, sees.needs_own() ? S - T + q0 : Val{}, S, S});
    const Val end = sees.limit(queries - 1);
    k.loop("block", sees.first_block(tile.block_keys), end, tile.block_keys, [&](Val first_key) {
      const Val range = k.min(end - first_key, k.index(tile.block_keys));
      const KeyBlock block = gather_keys(k, first_key, range, mask, numbers, masked);
      k.if_(block.count > 0, [&] { sees.in_block(block, [&] { key_block(block, sees); }); });
    });
    transpose_out(k, query_rows(kDq, kDqStride), k.integer(kDqStride), dqt, rows, E, queries, tile.lanes,
                  [](Val, Val vector) { return vector; });
  }

  void task(Val number) {
    b = number / G;
    group = number % G;
    if (apart) {
      b = number / H;
      head = number % H;
      group = group_of(head);
    }
    const Val T = k.integer(kT), S = k.integer(kS);
    for (auto [slot, stride] : {std::pair(kDk, kDkStride), std::pair(kDv, kDvStride)}) {
      const Ptr rows_of = gradient_rows(slot, stride);
      const Val step = k.integer(stride);
      k.loop("zero", S, [&](Val s) { k.zero(k.at(rows_of, s * step), k.index(E)); });
    }
    const Ptr mask = masked ? k.at(k.pointer(kMask, DType::U8), b * S) : Ptr{};
    auto one_head = [&] {
      k.loop("tile", k.index(0), T, kTileQueries, [&](Val first) {
        q0 = first;
        queries = k.min(T - q0, k.index(kTileQueries));
        query_tile(mask);
      });
    };
    if (apart) return one_head();
    k.loop("head", k.index(H / G), [&](Val in_group) {
      head = group * (H / G) + in_group;
      one_head();
    });
  }
};

}  // namespace

/// attention_grad {heads, kv_heads, head_dim, scale, causal, mask, apart; window, after, prefix, documents, alibi,
/// positions; dropout?}
/// slots: do, q, k, v, o, lse, key mask, dq, dk, dv, T, S, strides of do, q, k, v, o, dq, dk, dv; unless the sight is
/// plain SightSlots; with dropout keys, place
/// tasks = B * G. With `apart` every query head is a task of its own, B * H, and dk, dv have a column for
/// each.
llvm::Function* emit_attention_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  AttentionGradEmitter emitter(k, spec.attributes);
  k.for_tasks([&](Val task) { emitter.task(task); });
  return k.finish();
}

/// sum_heads {heads, kv_heads, head_dim, chunk}   slots: rows, out, parts, stride of out
/// out[row, g, e] = the sum over the group's heads, in order, of parts[row, h, e]. A task is `chunk` rows.
llvm::Function* emit_sum_heads(KernelBuilder& k, const ir::KernelSpec& spec) {
  const ir::Attributes& a = spec.attributes;
  const int64_t H = a.integer("heads"), G = a.integer("kv_heads"), E = a.integer("head_dim");
  const int64_t chunk = a.integer("chunk");
  k.for_tasks([&](Val task) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      k.loop("group", k.index(G), [&](Val group) {
        const Ptr out = k.at(k.pointer(1), row * k.integer(3) + group * E);
        const Ptr parts = k.at(k.pointer(2), (row * H + group * (H / G)) * E);
        k.vector_loop("e", k.index(E), [&](Lane e) {
          Var sum = k.var(k.load(parts, e));
          k.loop("head", k.index(1), k.index(H / G), 1,
                 [&](Val head) { sum.set(sum.get() + k.load(k.at(parts, head * E), e)); });
          k.store(out, e, sum);
        });
      });
    });
  });
  return k.finish();
}

}  // namespace tfc::codegen
