#include "passes/fuse_nodes.h"

#include <algorithm>
#include <map>

#include "ir/check.h"

namespace tfc::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

namespace {

/// Copies nodes into a body; what they read from outside becomes arguments.
class BodyWriter {
 public:
  const std::shared_ptr<Graph> body;
  std::vector<Value> operands;  // of the fused node

  explicit BodyWriter(const Graph& outer) : body(std::make_shared<Graph>()), outer_(outer) {
    body->real = outer.real;
  }

  void copy(NodeId id) {
    std::vector<Value> inside;
    for (Value operand : outer_.operands(id)) inside.push_back(operand.valid() ? value(operand) : Value{});
    const NodeId copy = body->add_shared(outer_, id, std::move(inside));
    if (body->node(copy).donates >= 0) body->edit(copy).donates = -1;
    for (uint32_t i = 0; i < outer_.node(id).results.size(); ++i) inside_[{id, i}] = {copy, i};
  }

  Value value(Value outside) {
    Value& inside = inside_[outside];
    if (inside.valid()) return inside;
    Node argument;
    argument.op = OpKind::Argument;
    argument.name = "arg" + std::to_string(operands.size());
    argument.attributes.set("index", static_cast<int64_t>(operands.size()));
    argument.results = {outer_.type(outside)};
    operands.push_back(outside);
    return inside = {body->add_node(std::move(argument), {}), 0};
  }

 private:
  const Graph& outer_;
  std::map<Value, Value> inside_;  // a few: bodies are small
};

}  // namespace

NodeId fuse_nodes(Graph& graph, const std::vector<NodeId>& nodes, const std::vector<Value>& results,
                  std::string_view kernel, const std::string& name) {
  BodyWriter writer(graph);
  for (NodeId id : nodes) writer.copy(id);
  Node fused;
  fused.op = OpKind::Fused;
  fused.name = name;
  fused.place = graph.node(nodes.front()).place;
  fused.attributes.set("kernel", std::string(kernel));
  for (Value result : results) {
    fused.results.push_back(graph.type(result));
    writer.body->outputs.push_back(
        {"result" + std::to_string(fused.results.size() - 1), writer.value(result)});
  }
  const Node& first = graph.node(results.front().node);
  fused.late = first.late;
  if (first.donates >= 0 && results.front().result == 0) {
    const Value donated = graph.operand(results.front().node, static_cast<uint32_t>(first.donates));
    const auto slot = std::find(writer.operands.begin(), writer.operands.end(), donated);
    TFC_CHECK(slot != writer.operands.end(), "'" + name + "' would donate a value of its own body");
    fused.donates = static_cast<int>(slot - writer.operands.begin());
  }
  fused.body = writer.body;
  const NodeId id = graph.add_node(std::move(fused), writer.operands);
  for (uint32_t i = 0; i < results.size(); ++i) graph.replace_uses(results[i], {id, i});
  for (auto dead = nodes.rbegin(); dead != nodes.rend(); ++dead) graph.erase(*dead);
  return id;
}

bool run_together(const Graph& graph, NodeId a, NodeId b) { return graph.node(a).late == graph.node(b).late; }

bool is_output(const Graph& graph, Value value) {
  const auto is_value = [&](const ir::Output& output) { return output.value == value; };
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), is_value);
}

NodeId only_reader(const Graph& graph, Value value) {
  const std::vector<ir::Use> uses = graph.uses(value);
  return uses.size() == 1 && !is_output(graph, value) ? uses.front().node : NodeId{};
}

}  // namespace tfc::passes
