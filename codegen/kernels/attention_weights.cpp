// The weights of attention as a matrix, for whoever wants to look at them: of a query the softmax over the keys that it
// sees, from the log-sum that the streaming kernel has left. A row depends on its own query and keys alone.
#include <limits>

#include "codegen/kernels/attention_sight.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum Slot { kQ, kK, kLse, kKeyMask, kOffsets, kQueryMask, kOut, kT, kS, kQStride, kKStride, kSlots };
constexpr int kSightSlot = kSlots;  // where the sight's slots begin

/// Of the sight its interval alone: documents and distances are looked up key by key.
SightSettings interval_of(SightSettings set) {
  set.documents = set.alibi = false;
  return set;
}

struct WeightsEmitter : AttentionSettings {
  KernelBuilder& k;
  const bool masked_queries;
  Sight interval;

  // the current tile and its query
  Val b, head, q0, queries, own, t;

  WeightsEmitter(KernelBuilder& builder, const ir::Attributes& a)
      : AttentionSettings(a),
        k(builder),
        masked_queries(a.flag("query_mask")),
        interval(builder, interval_of(set), kSightSlot, {}) {}

  Ptr marks(int slot, Val first) { return k.at(k.pointer(kSightSlot + slot, DType::I32), first); }
  Val row() { return b * k.integer(kT) + t; }

  /// Is the key there, and in the query's document? Absent: every key is.
  Val sees(Val key) {
    Val seen;
    if (masked) seen = k.load(k.pointer(kKeyMask, DType::U8), b * k.integer(kS) + key) != 0;
    if (set.documents) {
      const Val first_key = b * k.integer(kSightSlot + kKeyMarks);
      const Val same = k.load(marks(kDocuments, row())) == k.load(marks(kKeyDocuments, first_key), key);
      seen = seen ? seen & same : same;
    }
    return seen;
  }

  Val distance(Val key) {
    if (!set.positions) return k.to_real(own + (t - q0) - key);
    const Val first_key = b * k.integer(kSightSlot + kKeyMarks);
    return k.to_real(k.load(marks(kPositions, row())) - k.load(marks(kKeyPositions, first_key), key));
  }

  Val score(Val key) {
    const Ptr query = k.at(k.pointer(kQ), row() * k.integer(kQStride) + head * E);
    const Ptr from = k.at(k.pointer(kK), (b * k.integer(kS) + key) * k.integer(kKStride) + group_of(head) * E);
    const Val product = k.sum("qk", k.index(E), [&](Lane e) { return k.load(query, e) * k.load(from, e); });
    if (!set.alibi) return product * scale;
    const Val slope = k.to_real(k.load(k.pointer(kSightSlot + kSlopes, DType::F64), head));
    return product * scale - k.abs(distance(key)) * slope;
  }

  /// Scores where the weights will be, then the weights.
  void query(Ptr out, Val begin, Val end) {
    const Val log_sum = k.load(k.pointer(kLse), (b * H + head) * k.integer(kT) + t);
    k.loop("scores", begin, end, 1, [&](Val key) {
      const Val seen = sees(key);
      const auto store_score = [&] { k.store(out, key, score(key)); };
      seen ? k.if_(seen, store_score, [&] { k.store(out, key, k.number(-kInfinity)); }) : store_score();
    });
    k.vector_loop("weights", begin, end, [&](Lane key) {
      const Val s = k.load(out, key);
      k.store(out, key, k.select(s == -kInfinity, k.splat(k.number(0)), exp(s - log_sum)));
    });
  }

  void tile(Val number) {
    const Val tiles = (k.integer(kT) + (kTileQueries - 1)) / kTileQueries, S = k.integer(kS), T = k.integer(kT);
    q0 = number % tiles * kTileQueries;
    head = number / tiles % H;
    b = number / (tiles * H);
    queries = k.min(T - q0, k.index(kTileQueries));
    const Val cached = offset ? k.to_index(k.load(k.pointer(kOffsets, DType::I32), b)) : Val{};
    own = offset ? cached + q0 : S - T + q0;
    interval.begin_tile({b, head, q0, queries, T, own, offset ? cached : S, S});
    k.loop("query", queries, [&](Val i) {
      t = q0 + i;
      const Ptr out = k.at(k.pointer(kOut), ((b * H + head) * T + t) * S);
      k.zero(out, S);
      const auto body = [&] { query(out, k.min(interval.begin(i), S), interval.limit(i)); };
      if (!masked_queries) return body();
      k.if_(k.load(k.pointer(kQueryMask, DType::U8), row()) != 0, body);
    });
  }
};

}  // namespace

/// attention_weights {heads, kv_heads, head_dim, scale, causal, mask, offsets, query_mask; window, after, prefix,
/// documents, alibi, positions}
/// slots: q, k, lse, key mask, offsets, query mask, weights [B,H,T,S], T, S, strides of q and k; unless the sight is
/// plain SightSlots. tasks = B * H * tiles of T.
llvm::Function* emit_attention_weights(KernelBuilder& k, const ir::KernelSpec& spec) {
  WeightsEmitter emitter(k, spec.attributes);
  k.for_tasks([&](Val task) { emitter.tile(task); });
  return k.finish();
}

}  // namespace tfc::codegen
