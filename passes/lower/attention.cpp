// Attention and its cache. Tasks: a tile of queries of one head forward, a key head backward.
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
  l.call(std::move(record));
}

void lower_AttentionGrad(Lowering& l) {
  const Heads n(l.attributes());
  const Type &q_type = l.type(l.operand(1)), &k_type = l.type(l.operand(2));
  const Dim B = q_type.shape[0], T = q_type.shape[1], S = k_type.shape[1];
  std::vector<Location> rows;  // do, q, k, v, o, then dq, dk, dv
  for (uint32_t slot = 0; slot < 5; ++slot) rows.push_back(l.locate(l.operand(slot)));
  for (uint32_t result = 0; result < 3; ++result) {
    Location place = l.locate(l.result(result));
    const Type& type = result == 0 ? q_type : k_type;
    if (!l.used(l.result(result))) {  // the kernel adds to all three
      place = {l.temporary("d" + std::to_string(result), type.bytes()), static_width(type),
               static_width(type)};
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
  ir::Record record = kernel_call(l, "attention_grad", settings(l, mask.valid()), B * n.G, std::move(args),
                                  10 * n.H * n.E * B * T * S, q_type.elements() * 4 + k_type.elements() * 4);
  const int64_t element = ir::dtype_bytes(l.module().real), width = padded(n.E);
  record.scratch = element * (6 * width * kTileQueries + 3 * kMostBlockKeys * width +
                              2 * kMostBlockKeys * kTileQueries + 2 * kTileQueries) +
                   8 * kMostBlockKeys;
  l.call(std::move(record));
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
