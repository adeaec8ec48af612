// Attention and its cache. Tasks: a tile of queries of one head forward, a key head backward.
#include "passes/lower/attention.h"

#include "ir/alibi.h"
#include "passes/lower/dropout.h"

namespace tfc::passes {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;
using ir::Value;

constexpr int64_t kLanes = 16;  // as codegen/kernel_builder.h

constexpr int64_t kFewHeads = 4;

int64_t padded(int64_t elements) { return (elements + kLanes - 1) / kLanes * kLanes; }

Arg integer(const Dim& value) { return Lowering::integer(value); }

struct Heads {
  int64_t H, G, E;
  explicit Heads(const Attributes& a)
      : H(a.integer("heads")), G(a.integer("kv_heads")), E(a.integer("head_dim")) {}
};

/// The keys of dropout, where operand `slot` gives them: the last two arguments, and scratch for a tile's words.
void drop_weights(Lowering& l, uint32_t slot, ir::Record& record) {
  if (!l.operand(slot).valid()) return;
  add_dropout(record.kernel.attributes, record.args, "dropout",
              dropout_call(l, l.attributes(), l.operand(slot)));
  record.scratch = record.scratch + Dim(2 * kTileQueries * ir::dtype_bytes(l.module().real));
}

/// Keys that a query meets on average: all, or its window's.
Dim keys_met(const Attributes& a, const Dim& S) {
  const int64_t window = a.integer("window", 0);
  return window > 0 ? min(S, Dim(window + a.integer("after", 0))) : S;
}

void sum_heads(Lowering& l, const Heads& n, const Arg& parts, uint32_t result) {
  const Location out = l.locate(l.result(result));
  const Type& type = l.type(l.result(result));
  const int64_t chunk = rows_per_task(n.H * n.E);
  l.call(kernel_call(l, "sum_heads", {{"heads", n.H}, {"kv_heads", n.G}, {"head_dim", n.E}, {"chunk", chunk}},
                     ceildiv(type.rows(), chunk),
                     {integer(type.rows()), out.pointer, parts, integer(out.stride)},
                     type.rows() * (n.H * n.E), type.rows() * ((n.H + n.G) * n.E)));
}

}  // namespace

Attributes attention_settings(const Lowering& l, bool mask) {
  const Attributes& a = l.attributes();
  return {{"heads", a.integer("heads")},       {"kv_heads", a.integer("kv_heads")},
          {"head_dim", a.integer("head_dim")}, {"scale", a.real("scale")},
          {"causal", a.flag("causal")},        {"mask", mask}};
}

int64_t add_sight(Lowering& l, uint32_t first, Attributes& attributes, std::vector<Arg>& args) {
  const Attributes& a = l.attributes();
  const int64_t window = a.integer("window", 0), after = a.integer("after", 0);
  const bool alibi = a.flag("alibi"), prefix = l.operand(first).valid(), documents = l.operand(first + 1).valid(),
             positions = alibi && l.operand(first + 3).valid();
  if (window > 0) attributes.set("window", window);
  if (after > 0) attributes.set("after", after);
  for (const auto& [key, wanted] : {std::pair("prefix", prefix), std::pair("documents", documents),
                                    std::pair("alibi", alibi), std::pair("positions", positions)}) {
    if (wanted) attributes.set(key, true);
  }
  const bool marks = documents || alibi;
  if (window == 0 && !prefix && !marks) return 0;
  for (uint32_t slot = first; slot < first + 5; ++slot) args.push_back(l.pointer(l.operand(slot)));
  const Value of_keys = documents ? l.operand(first + 2) : l.operand(first + 4);
  args.push_back(integer(of_keys.valid() ? l.type(of_keys).shape[1] : Dim(0)));
  const int64_t H = a.integer("heads");
  args.push_back(alibi ? l.constant("alibi." + std::to_string(H), ir::alibi_slopes(H)) : l.pointer(Value{}));
  return marks ? 4 * 2 * (kTileQueries + kMostBlockKeys) : 0;
}

void lower_Attention(Lowering& l) {
  const Heads n(l.attributes());
  const Type &q_type = l.type(l.operand(0)), &k_type = l.type(l.operand(1));
  const Dim B = q_type.shape[0], T = q_type.shape[1], S = k_type.shape[1];
  const Location q = l.locate(l.operand(0)), k = l.locate(l.operand(1)), v = l.locate(l.operand(2)),
                 o = written(l, l.result(0));
  const Value mask = l.operand(3), offsets = l.operand(4);
  Attributes attributes = attention_settings(l, mask.valid());
  attributes.set("offsets", offsets.valid());
  std::vector<Arg> args = {q.pointer,
                           k.pointer,
                           v.pointer,
                           l.pointer(mask),
                           l.pointer(offsets),
                           o.pointer,
                           l.pointer(l.result(1)),
                           integer(T),
                           integer(S),
                           integer(q.stride),
                           integer(k.stride),
                           integer(v.stride),
                           integer(o.stride)};
  const int64_t marks = add_sight(l, 5, attributes, args);
  const bool ring = l.operand(10).valid();
  if (ring) {
    attributes.set("ring", true);
    const Location new_k = l.locate(l.operand(10)), new_v = l.locate(l.operand(11));
    args.insert(args.end(), {new_k.pointer, new_v.pointer, integer(new_k.stride), integer(new_v.stride)});
  }
  ir::Record record = kernel_call(l, "attention", attributes, B * n.H * ceildiv(T, kTileQueries), std::move(args),
                                  4 * n.H * n.E * B * T * keys_met(l.attributes(), S),
                                  q_type.elements() * 2 + k_type.elements() * 2);
  const int64_t element = ir::dtype_bytes(l.module().real);
  record.scratch = element * (3 * padded(n.E) * kTileQueries + kMostBlockKeys * kTileQueries +
                              (ring ? 2 : 1) * padded(kMostBlockKeys * n.E) + 2 * kTileQueries) +
                   8 * kMostBlockKeys + marks;
  drop_weights(l, 12, record);
  if (const Arg real = l.real_rows(l.operand(0)); real.index >= 0) {
    record.kernel.attributes.set("real_queries", true);
    record.args.push_back(real);
  }
  l.call(std::move(record));
}

/// Backward, a key head of a sequence is a task; where that gives few tasks and heads share keys, each query
/// head is one, with a dk and dv of its own that are added afterwards.
void lower_AttentionGrad(Lowering& l) {
  const Heads n(l.attributes());
  const bool apart = n.H > n.G && n.G < kFewHeads;
  const Type &q_type = l.type(l.operand(1)), &k_type = l.type(l.operand(2));
  const Dim B = q_type.shape[0], T = q_type.shape[1], S = k_type.shape[1];
  const int64_t element = ir::dtype_bytes(l.module().real), width = padded(n.E);

  std::vector<Location> rows;  // do, q, k, v, o, then dq, dk, dv
  for (uint32_t slot = 0; slot < 5; ++slot) rows.push_back(l.locate(l.operand(slot)));
  for (uint32_t result = 0; result < 3; ++result) {
    const bool by_head = apart && result > 0;
    const int64_t columns = (result == 0 || by_head ? n.H : n.G) * n.E;
    Location place = l.locate(l.result(result));
    if (by_head || !l.used(l.result(result))) {  // the kernel makes all three
      const Dim count = result == 0 ? B * T : B * S;
      place = {l.temporary("d" + std::to_string(result), count * (columns * element)), columns, columns};
    }
    rows.push_back(place);
  }
  const Value mask = l.operand(6);
  std::vector<Arg> args;
  for (int i = 0; i < 5; ++i) args.push_back(rows[i].pointer);
  args.push_back(l.pointer(l.operand(5)));
  args.push_back(l.pointer(mask));
  for (int i = 5; i < 8; ++i) args.push_back(rows[i].pointer);
  args.push_back(integer(T));
  args.push_back(integer(S));
  for (const Location& place : rows) args.push_back(integer(place.stride));
  Attributes attributes = attention_settings(l, mask.valid());
  attributes.set("apart", apart);
  const int64_t marks = add_sight(l, 7, attributes, args);
  ir::Record record = kernel_call(l, "attention_grad", attributes, B * (apart ? n.H : n.G), std::move(args),
                                  10 * n.H * n.E * B * T * keys_met(l.attributes(), S), q_type.elements() * 4 + k_type.elements() * 4);
  record.scratch = element * (6 * width * kTileQueries + 3 * kMostBlockKeys * width +
                              2 * kMostBlockKeys * kTileQueries + 2 * kTileQueries) +
                   8 * kMostBlockKeys + marks;
  drop_weights(l, 12, record);
  l.call(std::move(record));
  for (uint32_t result : {1u, 2u}) {
    if (apart && l.used(l.result(result))) sum_heads(l, n, rows[5 + result].pointer, result);
  }
}

void lower_CacheAppend(Lowering& l) {
  const Type &cache = l.type(l.operand(0)), &rows_type = l.type(l.operand(1));
  const bool ids = cache.dtype == ir::DType::I32;  // one for each token
  const int64_t width = ids ? 1 : static_width(cache), chunk = rows_per_task(width);
  const Dim rows_count = rows_type.shape[0] * rows_type.shape[1];
  const Location rows = l.locate(l.operand(1));
  Attributes attributes = {{"width", width}, {"chunk", chunk}};
  if (ids) attributes.set("ids", true);
  if (l.attributes().flag("ring")) attributes.set("ring", true);
  l.call(kernel_call(l, "cache_append", attributes, ceildiv(rows_count, chunk),
                     {integer(rows_count), l.pointer(l.result()), rows.pointer, l.pointer(l.operand(2)),
                      l.pointer(l.operand(3)), integer(rows_type.shape[1]), integer(cache.shape[1]),
                      integer(ids ? Dim(1) : Dim(rows.stride))},
                     0, 2 * rows_type.elements()));
}

}  // namespace tfc::passes
