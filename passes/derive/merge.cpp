// Low-rank adapters into their weights: W + alpha/r B A, and B = 0.
#include "passes/derive/derive.h"

namespace tfc::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

Value parameter_memory(Graph& graph, const ir::Parameter& parameter) {
  return add_state(graph, "params", parameter.name,
                   {graph.real, ir::Shape(parameter.shape.begin(), parameter.shape.end())});
}

/// `parameter` becomes `value`, which takes over its memory.
void replace(Graph& graph, const ir::Parameter& parameter, NodeId value) {
  graph.edit(value).donates = 0;
  graph.outputs.push_back({"params:" + parameter.name, {value, 0}});
}

}  // namespace

Graph derive_merge(const ir::Module& module) {
  constexpr std::string_view suffix = ".lora_a";
  Graph graph;
  graph.real = module.real;
  for (const ir::Parameter& a : module.parameters) {
    if (!a.name.ends_with(suffix)) continue;
    const std::string linear = a.name.substr(0, a.name.size() - suffix.size());
    const ir::Parameter &w = *module.parameter(linear + ".weight"),
                        &b = *module.parameter(linear + ".lora_b");
    const Value weight = parameter_memory(graph, w), second = parameter_memory(graph, b);
    const NodeId inner = graph.add(OpKind::Scale, {parameter_memory(graph, a)},
                                   {{"factor", module.facts.real("lora_scale")}}, linear + ".lora", a.place);
    const NodeId product = graph.add(OpKind::LinearDx, {second, {inner, 0}}, {}, linear + ".lora_b", a.place);
    replace(graph, w, graph.add(OpKind::Add, {weight, {product, 0}}, {}, linear + ".merged", w.place));
    replace(graph, b, graph.add(OpKind::Scale, {second}, {{"factor", 0.0}}, linear + ".cleared", b.place));
  }
  return graph;
}

}  // namespace tfc::passes
