// Taps in the graphs of the entries.
#include "ir/algorithms.h"
#include "ir/check.h"
#include "ir/taps.h"
#include "passes/derive/derive.h"

namespace tfc::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

void append_taps(Graph& graph, const Graph& model) {
  for (const ir::Output& output : model.outputs) {
    if (ir::is_tap(output.name)) graph.outputs.push_back(output);
  }
}

NodeId add_attention_weights(Graph& graph, NodeId attention, Value query_mask, const std::string& name) {
  const Node node = graph.node(attention);
  std::vector<Value> operands = graph.operands(attention);
  operands.resize(10);
  operands[2] = {attention, 1};
  operands.insert(operands.begin() + 5, query_mask);
  while (!operands.back().valid()) operands.pop_back();
  ir::Attributes attributes = node.attributes;
  attributes.erase("p");  // weights are shown as the softmax makes them, before dropout
  attributes.erase("place");
  return graph.add(OpKind::AttentionWeights, operands, std::move(attributes), name, node.place);
}

Graph with_attention_weights(const Graph& model) {
  Graph graph = model;
  for (ir::Output& output : graph.outputs) {
    const NodeId id = output.value.node;
    if (!ir::is_tap(output.name) || graph.node(id).op != OpKind::Attention || output.value.result != 1) continue;
    const ir::Dim tokens = graph.type(graph.operand(id, 0)).shape[1];
    const NodeId mask = graph.find(tokens == ir::Dim(ir::Symbol::S) ? "src_mask" : "mask");
    const std::string name(ir::tapped_name(output.name));
    output.value = {add_attention_weights(graph, id, mask.valid() ? Value{mask, 0} : Value{}, name), 0};
  }
  return graph;
}

void drop_taps_of_inputs(Graph& graph, const std::function<bool(const std::string&)>& absent) {
  std::vector<NodeId> inputs;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).op == OpKind::Input && absent(graph.node(id).name)) inputs.push_back(id);
  }
  const std::vector<bool> depends = ir::descendants(graph, inputs);
  std::erase_if(graph.outputs,
                [&](const ir::Output& output) { return ir::is_tap(output.name) && depends[output.value.node.index]; });
}

}  // namespace tfc::passes
