// Decoding with a cache. The model's own graph, in which
//   - positions count from `offsets`, the tokens that each row has already;
//   - self-attention appends its keys and values to the cache "PREFIX.k", "PREFIX.v" and reads all of it;
//   - attention to the memory reads the keys and values that the entry `encode` has put there.
#include "ir/check.h"
#include "passes/derive/derive.h"

namespace tfc::passes {

using ir::DType;
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Symbol;
using ir::Type;
using ir::Value;

namespace {

bool has_tokens(const Type& type, Symbol tokens) {
  return type.rank() == 3 && type.shape[1] == ir::Dim(tokens);
}

/// Attention whose queries are the decoder's own tokens; the rest belongs to the encoder.
bool attends_from_target(const Graph& graph, NodeId id) {
  return graph.node(id).op == OpKind::Attention && has_tokens(graph.type(graph.operand(id, 0)), Symbol::T);
}

bool attends_to_memory(const Graph& graph, NodeId id) {
  return attends_from_target(graph, id) && has_tokens(graph.type(graph.operand(id, 1)), Symbol::S);
}

/// Tables of positions start at each row's offset, so they get a batch dimension.
void offset_positions(Graph& graph, NodeId id, Value offsets) {
  const Node node = graph.node(id);
  if (node.attributes.dim("tokens") != ir::Dim(Symbol::T)) return;
  std::vector<Value> operands = graph.operands(id);
  if (node.op == OpKind::PositionRows) operands.resize(1);
  if (node.op != OpKind::PositionRows) operands.clear();
  operands.push_back(offsets);
  const NodeId fresh = graph.add(node.op, operands, node.attributes, node.name + ".offset", node.place);
  graph.replace_uses({id, 0}, {fresh, 0});
}

void use_cache(Graph& graph, NodeId id, Value offsets) {
  const Node node = graph.node(id);
  const NodeId mask_node = graph.find("mask");
  const Value mask = mask_node.valid() ? Value{mask_node, 0} : Value{};
  std::vector<Value> operands = graph.operands(id);
  for (uint32_t slot : {1u, 2u}) {
    const std::string name = node.name + (slot == 1 ? ".k" : ".v");
    Type type = graph.type(operands[slot]);
    type.shape[1] = ir::Dim(Symbol::C);
    const Value cache = add_state(graph, "cache", name, type);
    const NodeId appended = graph.add(OpKind::CacheAppend, {cache, operands[slot], offsets, mask}, {},
                                      name + ".append", node.place);
    graph.edit(appended).donates = 0;
    operands[slot] = {appended, 0};
    graph.outputs.push_back({"cache:" + name, operands[slot]});
  }
  // Only real tokens are ever appended, so the interval of keys that the offsets give needs no mask.
  const NodeId fresh = graph.add(OpKind::Attention, {operands[0], operands[1], operands[2], Value{}, offsets},
                                 node.attributes, node.name + ".cached", node.place);
  graph.replace_uses({id, 0}, {fresh, 0});
}

void read_memory_cache(Graph& graph, NodeId id) {
  const std::string name = graph.node(id).name;
  for (uint32_t slot : {1u, 2u}) {
    const Type type = graph.type(graph.operand(id, slot));
    graph.set_operand(id, slot, add_state(graph, "cache", name + (slot == 1 ? ".k" : ".v"), type));
  }
}

}  // namespace

Graph derive_decode(const ir::Module& module, const Graph& model) {
  Graph graph = with_outputs(model, {"output"});
  const Value offsets = add_input(graph, "offsets", {DType::I32, {ir::Dim(Symbol::B)}});
  for (NodeId id : graph.nodes()) {
    const OpKind op = graph.node(id).op;
    if (op == OpKind::PositionRows || op == OpKind::Sinusoid || op == OpKind::RopeTable) {
      offset_positions(graph, id, offsets);
    } else if (attends_to_memory(graph, id)) {
      read_memory_cache(graph, id);
    } else if (attends_from_target(graph, id)) {
      TFC_CHECK(graph.node(id).attributes.flag("causal"),
                "'" + graph.node(id).name + "' sees later tokens, so it cannot decode");
      use_cache(graph, id, offsets);
    }
  }
  graph.erase_unreachable();
  return graph;
}

Graph derive_encode(const ir::Module& module, const Graph& model) {
  Graph graph = model;
  graph.outputs.clear();
  for (NodeId id : graph.nodes()) {
    if (!attends_to_memory(graph, id)) continue;
    graph.outputs.push_back({"cache:" + graph.node(id).name + ".k", graph.operand(id, 1)});
    graph.outputs.push_back({"cache:" + graph.node(id).name + ".v", graph.operand(id, 2)});
  }
  graph.erase_unreachable();
  return graph;
}

}  // namespace tfc::passes
