#include "passes/fold_constants.h"

#include "ir/algorithms.h"
#include "passes/rewrite_entries.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

bool produced_by(const Graph& graph, Value value, OpKind op) {
  return value.valid() && graph.node(value.node).op == op;
}

/// scale(x) {1} -> x
bool fold_scale(Graph& graph, NodeId id) {
  if (graph.node(id).attributes.real("factor") != 1.0) return false;
  graph.replace_uses({id, 0}, graph.operand(id, 0));
  return true;
}

/// add(x, zeros) -> x, on either side. A sum that takes over storage stays: it is there for the storage.
bool fold_add(Graph& graph, NodeId id) {
  if (graph.node(id).donates >= 0) return false;
  for (uint32_t slot : {0u, 1u}) {
    if (!produced_by(graph, graph.operand(id, slot), OpKind::Zeros)) continue;
    graph.replace_uses({id, 0}, graph.operand(id, 1 - slot));
    return true;
  }
  return false;
}

/// mask_rows(mask_rows(x, m), m) -> mask_rows(x, m)
bool fold_mask(Graph& graph, NodeId id) {
  const Value x = graph.operand(id, 0);
  if (!produced_by(graph, x, OpKind::MaskRows) || graph.operand(x.node, 1) != graph.operand(id, 1))
    return false;
  graph.replace_uses({id, 0}, x);
  return true;
}

/// split(concat(a, b, ...)) with the same widths -> a, b, ...
bool fold_split(Graph& graph, NodeId id) {
  const Value x = graph.operand(id, 0);
  const Node& split = graph.node(id);
  if (!produced_by(graph, x, OpKind::Concat) || graph.operand_count(x.node) != split.results.size())
    return false;
  for (uint32_t i = 0; i < split.results.size(); ++i) {
    if (graph.type(graph.operand(x.node, i)) != split.results[i]) return false;
  }
  for (uint32_t i = 0; i < split.results.size(); ++i) graph.replace_uses({id, i}, graph.operand(x.node, i));
  return true;
}

/// concat of all results of one split, in order -> what was split
bool fold_concat(Graph& graph, NodeId id) {
  const Value first = graph.operand(id, 0);
  if (!produced_by(graph, first, OpKind::Split)) return false;
  const size_t count = graph.operand_count(id);
  if (count != graph.node(first.node).results.size()) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (graph.operand(id, i) != Value{first.node, i}) return false;
  }
  graph.replace_uses({id, 0}, graph.operand(first.node, 0));
  return true;
}

bool fold(Graph& graph, NodeId id) {
  switch (graph.node(id).op) {
    case OpKind::Scale:
      return fold_scale(graph, id);
    case OpKind::Add:
      return fold_add(graph, id);
    case OpKind::MaskRows:
      return fold_mask(graph, id);
    case OpKind::Split:
      return fold_split(graph, id);
    case OpKind::Concat:
      return fold_concat(graph, id);
    default:
      return false;
  }
}

}  // namespace

bool fold_constants(ir::Module& module, PassContext& context) {
  return rewrite_entries(module, context, "fold-constants", "nodes need not run", [](Graph& graph) {
    size_t folded = 0;
    for (NodeId id : ir::topological_order(graph)) folded += fold(graph, id);
    if (folded > 0) graph.erase_unreachable();
    return folded;
  });
}

}  // namespace tfc::passes
