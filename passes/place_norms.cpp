#include "passes/place_norms.h"

#include <map>

#include "ir/check.h"
#include "passes/norm_lists.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

/// The attributes "attention.K" of a layer, as the "K" of its attention node.
ir::Attributes settings_of(const Node& layer, std::string_view table) {
  ir::Attributes result;
  for (const auto& [key, value] : layer.attributes.entries()) {
    if (key.size() > table.size() + 1 && key.starts_with(table) && key[table.size()] == '.') {
      result.set(std::string_view(key).substr(table.size() + 1), value);
    }
  }
  return result;
}

struct LayerWriter {
  Graph& graph;
  const NodeId layer;
  const Node original = graph.node(layer);
  std::map<std::string_view, Value> named = {};

  Value add(const ListNode& item) {
    std::vector<Value> operands;
    for (std::string_view name : words(item.in)) operands.push_back(named.at(name));
    Node node;
    node.name = original.attributes.text("prefix") + "." + std::string(item.id);
    node.place = original.place;
    node.results = {original.results[0]};
    const bool cross = item.op == "cross";
    node.attributes = settings_of(original, cross ? "attention" : item.op);
    if (item.op != "residual" || node.attributes.has("gamma"))
      node.attributes.set("prefix", original.attributes.text("weights", original.attributes.text("prefix")) +
                                        "." + std::string(item.id));
    if (item.op == "norm") {
      node.op = OpKind::BlockNorm;
      node.attributes.set("final", std::string());
    } else if (item.op == "ffn") {
      node.op = OpKind::BlockFfn;
      if (node.attributes.integer("experts", 0) > 0) operands.push_back(graph.operand(layer, 2));
    } else if (item.op == "residual") {
      node.op = OpKind::BlockResidual;
    } else {
      node.op = OpKind::BlockAttention;
      operands.push_back(cross ? graph.operand(layer, 1) : Value{});
      operands.push_back(graph.operand(layer, cross ? 3 : 2));
      if (cross) {  // every query may see the whole memory, whose tokens have positions of their own
        node.attributes.set("causal", false);
        node.attributes.set("rope", std::string());
      }
    }
    return {graph.add_node(std::move(node), operands), 0};
  }

  void write(std::string_view placement) {
    named["x"] = graph.operand(layer, 0);
    Value last;
    for (const ListNode& item : norm_list(placement, original.attributes.flag("cross"))) {
      last = named[item.id] = add(item);
    }
    graph.replace_uses({layer, 0}, last);
    graph.erase(layer);
  }
};

std::string depth_text(int64_t depth) {
  return "the stack has " + std::to_string(depth) + (depth == 1 ? " layer" : " layers") +
         (depth > kDeepestPostStack ? ", more than " : ", not more than ") +
         std::to_string(kDeepestPostStack);
}

void place_layer(Graph& graph, NodeId layer, PassContext& context) {
  LayerWriter writer{graph, layer};
  std::string placement = writer.original.attributes.text("placement");
  const std::string prefix = writer.original.attributes.text("prefix");
  if (placement == "auto") {
    const int64_t depth = writer.original.attributes.integer("depth");
    placement = auto_placement(depth);
    context.diagnostics.remark(
        "place-norms", writer.original.place,
        "'" + prefix + "': auto placement is " + placement + ", because " + depth_text(depth));
  } else {
    context.diagnostics.remark("place-norms", writer.original.place,
                               "'" + prefix + "': placement " + placement + " kept as written");
  }
  writer.write(placement);
}

/// A final norm that hangs on the placement: a post stack already ends in a norm.
void settle_final_norm(Graph& graph, NodeId id, PassContext& context) {
  const Node& node = graph.node(id);
  const std::string prefix = node.attributes.text("prefix");
  const bool keep = auto_placement(node.attributes.integer("depth")) != "post";
  context.diagnostics.remark("place-norms", node.place,
                             "'" + prefix + "': " +
                                 (keep ? "kept, because the placement became pre"
                                       : "dropped, because the placement became post, which ends in a norm"));
  if (keep) {
    graph.edit(id).attributes.set("final", std::string("yes"));
    graph.edit(id).attributes.erase("depth");
  } else {
    graph.replace_uses({id, 0}, graph.operand(id, 0));
    graph.erase(id);
  }
}

}  // namespace

bool place_norms(ir::Module& module, PassContext& context) {
  ir::Entry* model = module.entry("model");
  TFC_CHECK(model, "place-norms expects an entry named model");
  Graph& graph = model->graph;
  bool changed = false;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).op == OpKind::BlockLayer) {
      place_layer(graph, id, context);
      changed = true;
    } else if (graph.node(id).op == OpKind::BlockNorm &&
               graph.node(id).attributes.text("final", "") == "auto") {
      settle_final_norm(graph, id, context);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tfc::passes
