// Decoding with a cache. The model's own graph, in which
//   - positions count from `offsets`, the tokens that each row has already, unless they are an input;
//   - self-attention appends its keys and values to the cache "PREFIX.k", "PREFIX.v" and reads all of it; with a window
//     the cache is a ring of the last tokens, read before this call's, which come beside it, replace the oldest;
//   - the keys' documents and positions, where attention asks for them, have a cache that all layers share;
//   - attention to the memory reads the keys and values that the entry `encode` has put there.
#include <algorithm>

#include "ir/check.h"
#include "ir/taps.h"
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

/// Slots of a window's ring: a query sees window - 1 keys of the cache. Not fewer than kernels read at once.
constexpr int64_t kLeastSlots = 64;

Value real_tokens(const Graph& graph) {
  const NodeId mask = graph.find("mask");
  return mask.valid() ? Value{mask, 0} : Value{};
}

/// Tables of positions start at each row's offset, so they get a batch dimension.
void offset_positions(Graph& graph, NodeId id, Value offsets) {
  const Node node = graph.node(id);
  if (node.attributes.dim("tokens") != ir::Dim(Symbol::T)) return;
  if (node.op != OpKind::PositionRows && graph.operand_count(id) > 0 && graph.operand(id, 0).valid()) return;
  std::vector<Value> operands = graph.operands(id);
  if (node.op == OpKind::PositionRows) operands.resize(1);
  if (node.op != OpKind::PositionRows) operands.clear();
  operands.push_back(offsets);
  const NodeId fresh = graph.add(node.op, operands, node.attributes, node.name + ".offset", node.place);
  graph.replace_uses({id, 0}, {fresh, 0});
}

/// The cache's tensor with this call's rows in it, which becomes an output.
Value append(Graph& graph, const std::string& name, Type type, Value rows, Value offsets, const ir::Place& place) {
  const Value cache = add_state(graph, "cache", name, std::move(type));
  const NodeId appended =
      graph.add(OpKind::CacheAppend, {cache, rows, offsets, real_tokens(graph)}, {}, name + ".append", place);
  graph.edit(appended).donates = 0;
  graph.outputs.push_back({"cache:" + name, {appended, 0}});
  return {appended, 0};
}

/// Documents or positions of all keys; the first layer that asks makes the cache.
Value marks_of_keys(Graph& graph, Value own, Value offsets) {
  const std::string name = graph.node(own.node).name;
  if (const NodeId found = graph.find(name + ".append"); found.valid()) return {found, 0};
  Type type = graph.type(own);
  type.shape[1] = ir::Dim(Symbol::C);
  return append(graph, name, std::move(type), own, offsets, graph.node(own.node).place);
}

/// Keys and values of the last tokens, and this call's beside them.
void use_ring(Graph& graph, const Node& node, std::vector<Value>& operands, Value offsets) {
  const int64_t slots = std::max(node.attributes.integer("window") - 1, kLeastSlots);
  operands.resize(12);
  for (uint32_t slot : {1u, 2u}) {
    const std::string name = node.name + (slot == 1 ? ".k" : ".v");
    Type type = graph.type(operands[slot]);
    type.shape[1] = min(ir::Dim(Symbol::C), ir::Dim(slots));
    const Value cache = add_state(graph, "cache", name, type), rows = operands[slot];
    const NodeId appended = graph.add(OpKind::CacheAppend, {cache, rows, offsets, real_tokens(graph)},
                                      {{"ring", true}}, name + ".append", node.place);
    graph.edit(appended).donates = 0;
    graph.outputs.push_back({"cache:" + name, {appended, 0}});
    operands[slot] = cache;
    operands[9 + slot] = rows;
  }
}

/// The node that shows the attention's weights; invalid where nobody looks.
NodeId weights_of(const Graph& graph, NodeId attention) {
  const std::vector<ir::Use> uses = graph.uses({attention, 1});
  return uses.empty() ? NodeId{} : uses.front().node;
}

/// Weights over the cache's slots; over a ring's, which are no keys, nobody looks.
void show_cached_weights(Graph& graph, NodeId weights, NodeId fresh, bool ring) {
  if (ring) {
    std::erase_if(graph.outputs, [&](const ir::Output& output) { return output.value.node == weights; });
    return;
  }
  const std::string name = graph.node(weights).name + ".cached";
  const NodeId cached = add_attention_weights(graph, fresh, real_tokens(graph), name);
  graph.replace_uses({weights, 0}, {cached, 0});
}

void use_cache(Graph& graph, NodeId id, Value offsets) {
  const Node node = graph.node(id);
  std::vector<Value> operands = graph.operands(id);
  operands.resize(10);
  // Only real tokens are ever appended, so the interval of keys that the offsets give needs no mask.
  operands[3] = {};
  operands[4] = offsets;
  for (uint32_t slot : {7u, 9u}) {
    if (operands[slot].valid()) operands[slot] = marks_of_keys(graph, operands[slot], offsets);
  }
  if (node.attributes.integer("window", 0) > 0) {
    use_ring(graph, node, operands, offsets);
  } else {
    for (uint32_t slot : {1u, 2u}) {
      const std::string name = node.name + (slot == 1 ? ".k" : ".v");
      Type type = graph.type(operands[slot]);
      type.shape[1] = ir::Dim(Symbol::C);
      operands[slot] = append(graph, name, std::move(type), operands[slot], offsets, node.place);
    }
  }
  while (!operands.back().valid()) operands.pop_back();
  const NodeId fresh = graph.add(OpKind::Attention, operands, node.attributes, node.name + ".cached", node.place);
  const NodeId weights = weights_of(graph, id);
  if (weights.valid()) show_cached_weights(graph, weights, fresh, node.attributes.integer("window", 0) > 0);
  graph.replace_uses({id, 0}, {fresh, 0});
}

void read_memory_cache(Graph& graph, NodeId id) {
  const std::string name = graph.node(id).name;
  for (uint32_t slot : {1u, 2u}) {
    const Type type = graph.type(graph.operand(id, slot));
    graph.set_operand(id, slot, add_state(graph, "cache", name + (slot == 1 ? ".k" : ".v"), type));
  }
  if (const NodeId weights = weights_of(graph, id); weights.valid())
    graph.set_operand(weights, 1, graph.operand(id, 1));
}

bool is_of_source(const std::string& input) { return input.starts_with("src") || input == "memory"; }

}  // namespace

Graph derive_decode(const ir::Module& module, const Graph& model) {
  Graph graph = model;
  graph.outputs = {{"output", main_output(module, model)}};
  append_taps(graph, model);
  graph.erase_unreachable();
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
  drop_taps_of_inputs(graph, [](const std::string& input) {  // the source went by before, its mask and documents stay
    return is_of_source(input) && input != "src_mask" && input != "src_documents";
  });
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
  append_taps(graph, model);
  std::erase_if(graph.outputs, [&](const ir::Output& output) {  // tables of the target's positions
    const ir::Shape& shape = graph.type(output.value).shape;
    return ir::is_tap(output.name) && std::find(shape.begin(), shape.end(), ir::Dim(Symbol::T)) != shape.end();
  });
  drop_taps_of_inputs(graph, [](const std::string& input) { return !is_of_source(input); });
  graph.erase_unreachable();
  return graph;
}

}  // namespace tfc::passes
