// The weights of attention, where a tap shows them. Tasks: a tile of queries of one head.
#include "passes/lower/attention.h"

namespace tfc::passes {

using ir::Arg;
using ir::Dim;
using ir::Value;

void lower_AttentionWeights(Lowering& l) {
  const ir::Attributes& a = l.attributes();
  const int64_t H = a.integer("heads"), E = a.integer("head_dim");
  const ir::Type &q_type = l.type(l.operand(0)), &k_type = l.type(l.operand(1));
  const Dim B = q_type.shape[0], T = q_type.shape[1], S = k_type.shape[1];
  const Location q = l.locate(l.operand(0)), k = l.locate(l.operand(1));
  const Value mask = l.operand(3), offsets = l.operand(4), query_mask = l.operand(5);
  ir::Attributes attributes = attention_settings(l, mask.valid());
  attributes.set("offsets", offsets.valid());
  attributes.set("query_mask", query_mask.valid());
  std::vector<Arg> args = {q.pointer,          k.pointer,
                           l.pointer(l.operand(2)), l.pointer(mask),
                           l.pointer(offsets), l.pointer(query_mask),
                           l.pointer(l.result()), Lowering::integer(T),
                           Lowering::integer(S), Lowering::integer(q.stride),
                           Lowering::integer(k.stride)};
  add_sight(l, 6, attributes, args);
  l.call(kernel_call(l, "attention_weights", attributes, B * H * ceildiv(T, kTileQueries), std::move(args),
                     2 * H * E * B * T * S, q_type.elements() + k_type.elements() + B * H * T * S));
}

}  // namespace tfc::passes
