// The optimizer's step: one pass over the block of what is trained, in place.
#include "passes/derive/derive.h"

namespace tfc::passes {

using ir::DType;
using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Type;
using ir::Value;

Graph derive_step(const ir::Module& module) {
  Graph graph;
  graph.real = module.real;
  const Type scalar{DType::F64, {}};
  const Type block{module.real, {ir::Dim(module.trained_block())}};
  const Type per_parameter{DType::F64, {ir::Dim(static_cast<int64_t>(module.parameters.size()))}};
  const Value count = add_input(graph, "count", scalar);
  const Value clip = add_input(graph, "clip", scalar);
  const Value hyper = add_input(graph, "hyper", {DType::F64, {ir::Dim(8)}});
  const Value lr_scale = add_input(graph, "lr_scale", per_parameter);
  const Value decay = add_input(graph, "decay", per_parameter);
  const Value params = add_state(graph, "params", "*", block);
  const Value grads = add_state(graph, "grads", "*", block);
  const Value moment1 = add_state(graph, "moment1", "*", block);
  const Value moment2 = add_state(graph, "moment2", "*", block);

  const NodeId squares = graph.add(OpKind::SumSquares, {grads}, {}, "squares");
  const NodeId scale = graph.add(OpKind::ClipScale, {{squares, 0}, count, clip}, {}, "clip_scale");
  const NodeId update = graph.add(
      OpKind::AdamW, {params, grads, moment1, moment2, {scale, 0}, hyper, lr_scale, decay}, {}, "adamw");
  graph.edit(update).donates = 0;  // and 1, 2, 3: see ir/ops.def
  graph.outputs = {{"params:*", {update, 0}},
                   {"moment1:*", {update, 1}},
                   {"moment2:*", {update, 2}},
                   {"grads:*", {update, 3}},
                   {"norm", {scale, 1}}};
  return graph;
}

}  // namespace tfc::passes
