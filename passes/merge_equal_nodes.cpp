#include "passes/merge_equal_nodes.h"

#include <unordered_map>

#include "ir/algorithms.h"
#include "ir/text.h"
#include "passes/rewrite_entries.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;

/// What a node computes, as text; equal text means equal values.
std::string meaning(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::string text(ir::info(node.op).text);
  node.attributes.append_text(text);
  for (ir::Value operand : graph.operands(id)) {
    text += ' ';
    ir::append_number(text, operand.node.index);  // an absent one has a number too
    text += '.';
    ir::append_number(text, operand.result);
  }
  if (ir::info(node.op).op_class == ir::OpClass::Leaf) node.results[0].append_text(text);
  return text;
}

/// A late node is there because it computes what another one did.
bool may_merge(const Node& node) {
  return node.donates < 0 && !node.body && !node.late && node.op != OpKind::Input;
}

size_t merge_in(Graph& graph) {
  std::unordered_map<std::string, NodeId> first;
  size_t merged = 0;
  for (NodeId id :
       ir::topological_order(graph)) {  // operands before users, so equal operands have met already
    const Node& node = graph.node(id);
    if (!may_merge(node)) continue;
    const auto [found, fresh] = first.try_emplace(meaning(graph, id), id);
    if (fresh) continue;
    for (uint32_t i = 0; i < node.results.size(); ++i) graph.replace_uses({id, i}, {found->second, i});
    graph.erase(id);
    ++merged;
  }
  return merged;
}

}  // namespace

bool merge_equal_nodes(ir::Module& module, PassContext& context) {
  return rewrite_entries(module, context, "merge-equal-nodes", "nodes computed what another one does", merge_in);
}

}  // namespace tfc::passes
