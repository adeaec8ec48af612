// Attention and its cache. Tasks: a tile of queries of one head forward, a key head backward.
#include "passes/lower/dropout.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;
using ir::Value;

// As codegen/kernels/attention_parts.h.
constexpr int64_t kTileQueries = 32;
constexpr int64_t kMostBlockKeys = 64;
constexpr int64_t kLanes = 16;

constexpr int64_t kFewHeads = 4;

int64_t padded(int64_t elements) { return (elements + kLanes - 1) / kLanes * kLanes; }

Arg integer(const Dim& value) { return Lowering::integer(value); }

struct Heads {
  int64_t H, G, E;
  explicit Heads(const Attributes& a)
      : H(a.integer("heads")), G(a.integer("kv_heads")), E(a.integer("head_dim")) {}
};

Attributes settings(const Lowering& l, bool mask) {
  const Attributes& a = l.attributes();
  return {{"heads", a.integer("heads")},       {"kv_heads", a.integer("kv_heads")},
          {"head_dim", a.integer("head_dim")}, {"scale", a.real("scale")},
          {"causal", a.flag("causal")},        {"mask", mask}};
}

/// The keys of dropout, where operand `slot` gives them: the last two arguments, and scratch for a tile's words.
void drop_weights(Lowering& l, uint32_t slot, ir::Record& record) {
  if (!l.operand(slot).valid()) return;
  add_dropout(record.kernel.attributes, record.args, "dropout",
              dropout_call(l, l.attributes(), l.operand(slot)));
  record.scratch = record.scratch + Dim(2 * kTileQueries * ir::dtype_bytes(l.module().real));
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

void lower_Attention(Lowering& l) {
  const Heads n(l.attributes());
  const Type &q_type = l.type(l.operand(0)), &k_type = l.type(l.operand(1));
  const Dim B = q_type.shape[0], T = q_type.shape[1], S = k_type.shape[1];
  const Location q = l.locate(l.operand(0)), k = l.locate(l.operand(1)), v = l.locate(l.operand(2)),
                 o = l.locate(l.result(0));
  const Value mask = l.operand(3), offsets = l.operand(4);
  Attributes attributes = settings(l, mask.valid());
  attributes.set("offsets", offsets.valid());
  ir::Record record =
      kernel_call(l, "attention", attributes, B * n.H * ceildiv(T, kTileQueries),
                  {q.pointer, k.pointer, v.pointer, l.pointer(mask), l.pointer(offsets), o.pointer,
                   l.pointer(l.result(1)), integer(T), integer(S), integer(q.stride), integer(k.stride),
                   integer(v.stride), integer(o.stride)},
                  4 * n.H * n.E * B * T * S, q_type.elements() * 2 + k_type.elements() * 2);
  const int64_t element = ir::dtype_bytes(l.module().real);
  record.scratch = element * (3 * padded(n.E) * kTileQueries + kMostBlockKeys * kTileQueries +
                              padded(kMostBlockKeys * n.E) + 2 * kTileQueries) +
                   8 * kMostBlockKeys;
  drop_weights(l, 5, record);
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
  Attributes attributes = settings(l, mask.valid());
  attributes.set("apart", apart);
  ir::Record record = kernel_call(l, "attention_grad", attributes, B * (apart ? n.H : n.G), std::move(args),
                                  10 * n.H * n.E * B * T * S, q_type.elements() * 4 + k_type.elements() * 4);
  record.scratch = element * (6 * width * kTileQueries + 3 * kMostBlockKeys * width +
                              2 * kMostBlockKeys * kTileQueries + 2 * kTileQueries) +
                   8 * kMostBlockKeys;
  drop_weights(l, 7, record);
  l.call(std::move(record));
  for (uint32_t result : {1u, 2u}) {
    if (apart && l.used(l.result(result))) sum_heads(l, n, rows[5 + result].pointer, result);
  }
}

void lower_CacheAppend(Lowering& l) {
  const Type &cache = l.type(l.operand(0)), &rows_type = l.type(l.operand(1));
  const int64_t width = static_width(cache), chunk = rows_per_task(width);
  const Location rows = l.locate(l.operand(1));
  l.call(kernel_call(
      l, "cache_append", {{"width", width}, {"chunk", chunk}}, ceildiv(rows_type.rows(), chunk),
      {integer(rows_type.rows()), l.pointer(l.result()), rows.pointer, l.pointer(l.operand(2)),
       l.pointer(l.operand(3)), integer(rows_type.shape[1]), integer(cache.shape[1]), integer(rows.stride)},
      0, 2 * rows_type.elements()));
}

}  // namespace tfc::passes
