#include "passes/derive_entries.h"

#include <algorithm>

#include "ir/check.h"
#include "ir/heads.h"
#include "passes/derive/derive.h"

namespace tfc::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

namespace {
constexpr uint32_t kAttentionDropout = 12;  // operand: the keys of dropout
}

Graph with_outputs(const Graph& model, const std::vector<std::string>& names) {
  Graph graph = model;
  graph.outputs.clear();
  for (const std::string& name : names) graph.outputs.push_back({name, model.output(name)});
  append_taps(graph, model);
  graph.erase_unreachable();
  return graph;
}

Graph without_dropout(const Graph& model) {
  Graph graph = model;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).op == OpKind::Dropout) graph.replace_uses({id, 0}, graph.operand(id, 0));
    if (graph.node(id).op != OpKind::Attention || !graph.operand(id, kAttentionDropout).valid()) continue;
    graph.set_operand(id, kAttentionDropout, {});
    graph.edit(id).attributes.erase("p");
    graph.edit(id).attributes.erase("place");
  }
  graph.erase_unreachable();
  return graph;
}

NodeId logits_product(const ir::Module& module, const Graph& model) {
  const std::vector<ir::HeadFacts> heads = ir::heads_of(module.facts);
  const int main = ir::main_head(heads);
  if (main < 0 || heads[static_cast<size_t>(main)].type != "lm") return {};
  Value value = main_output(module, model);
  if (model.node(value.node).op == OpKind::MaskRows) value = model.operand(value.node, 0);
  TFC_CHECK(model.node(value.node).op == OpKind::Linear, "the output of a language model is no product");
  return value.node;
}

Value main_output(const ir::Module& module, const Graph& model) {
  const std::vector<ir::HeadFacts> heads = ir::heads_of(module.facts);
  const int main = ir::main_head(heads);
  TFC_CHECK(main >= 0, "no head is the main one");
  return model.output(heads[static_cast<size_t>(main)].named("output"));
}

Value add_input(Graph& graph, const std::string& name, ir::Type type) {
  if (const NodeId found = graph.find(name); found.valid()) return {found, 0};
  ir::Node node;
  node.op = OpKind::Input;
  node.name = name;
  node.attributes.set("name", name);
  node.results = {std::move(type)};
  return {graph.add_node(std::move(node), {}), 0};
}

Value add_state(Graph& graph, std::string_view space, const std::string& name, ir::Type type) {
  ir::Node node;
  node.op = OpKind::State;
  node.name = std::string(space) + ":" + name;
  node.attributes.set("space", std::string(space));
  node.attributes.set("name", name);
  node.results = {std::move(type)};
  return {graph.add_node(std::move(node), {}), 0};
}

Graph derive_last(const ir::Module& module, const Graph& model) {
  Graph graph = model;
  const NodeId product = logits_product(module, model);  // invalid: the output is hidden states
  const Value output = main_output(module, model), hidden = product.valid() ? graph.operand(product, 0) : output;
  const ir::Place place = graph.node(output.node).place;
  const NodeId input = graph.find("mask");
  const Value mask = input.valid() ? Value{input, 0} : Value{};
  NodeId last = graph.add(OpKind::Pool, {hidden, mask}, {{"kind", std::string("last")}}, "last", place);
  if (product.valid()) {
    last = graph.add(OpKind::Linear, {{last, 0}, graph.operand(product, 1), graph.operand(product, 2)}, {},
                     "last.logits", place);
    if (mask.valid()) {  // a row without a token has no last one: zeros, not the bias
      const NodeId any = graph.add(OpKind::AnyReal, {mask}, {}, "last.any_real", place);
      last = graph.add(OpKind::MaskRows, {{last, 0}, {any, 0}}, {}, "last.masked", place);
    }
  }
  graph.outputs = {{"output", {last, 0}}};
  append_taps(graph, model);
  graph.erase_unreachable();
  return graph;
}

/// Outputs BASE of all heads, or of those that have a loss.
std::vector<std::string> outputs_of(const std::vector<ir::HeadFacts>& heads, std::initializer_list<const char*> bases,
                                    bool with_loss) {
  std::vector<std::string> names;
  for (const ir::HeadFacts& head : heads) {
    if (with_loss && !head.has_loss()) continue;
    for (const char* base : bases) names.push_back(head.named(base));
  }
  return names;
}

/// Of the heads whose loss is cross entropy.
Graph derive_logprobs(const std::vector<ir::HeadFacts>& heads, const Graph& model) {
  Graph graph = model;
  graph.outputs.clear();
  for (const ir::HeadFacts& head : heads) {
    if (!head.has_class_targets()) continue;
    NodeId loss = model.output(head.named("loss.sum")).node;
    if (graph.node(loss).op == OpKind::AddBalance) loss = graph.operand(loss, 0).node;
    const NodeId logprobs = graph.add(OpKind::LinearLogprob, graph.operands(loss),
                                      {{"ignore_index", graph.node(loss).attributes.integer("ignore_index")}},
                                      head.named("logprobs"), graph.node(loss).place);
    graph.outputs.push_back({head.named("logprobs"), {logprobs, 0}});
  }
  append_taps(graph, model);
  graph.erase_unreachable();
  return graph;
}

bool derive_entries(ir::Module& module, PassContext& context) {
  const ir::Entry* found = module.entry("model");
  TFC_CHECK(found, "derive-entries expects an entry named model");
  const Graph trained = with_attention_weights(found->graph), model = without_dropout(trained);
  const std::string kind = module.facts.text("kind");
  const std::vector<ir::HeadFacts> heads = ir::heads_of(module.facts);
  const int main = ir::main_head(heads);
  const ir::HeadFacts one = main < 0 ? ir::HeadFacts{} : heads[static_cast<size_t>(main)];
  const bool logits_or_states = one.type == "lm" || one.type == "none";
  const std::vector<std::string> losses = outputs_of(heads, {"loss.sum", "loss.count"}, true),
                                 outputs = outputs_of(heads, {"output"}, false);
  const bool loss = !losses.empty();
  const bool predicts = std::any_of(heads.begin(), heads.end(), [](const auto& h) { return h.has_class_targets(); });
  const bool infers = context.options.functions != "train", trains = context.options.functions != "infer";

  module.entries.clear();
  const auto add = [&](std::string name, Graph graph) {
    module.entries.push_back({std::move(name), std::move(graph), {}});
  };
  add("infer", with_outputs(model, outputs));
  if (infers && main >= 0 && logits_or_states) add("last", derive_last(module, model));
  if (loss) add("loss", with_outputs(model, losses));
  if (infers && predicts) add("logprobs", derive_logprobs(heads, model));
  if (trains && loss) add("train", with_outputs(trained, losses));
  if (trains) add("vjp", with_outputs(trained, outputs));
  if (trains) add("step", derive_step(module));
  if (infers && kind != "encoder" && main >= 0 && one.per_token) {
    add("decode", derive_decode(module, model));
    if (kind == "encoder-decoder") add("encode", derive_encode(module, model));
  }
  if (module.facts.has("lora_scale")) add("merge", derive_merge(module));
  std::string names;
  for (const ir::Entry& entry : module.entries) names += (names.empty() ? "" : ", ") + entry.name;
  context.diagnostics.remark("derive-entries", {}, "the library's entries are " + names);
  return true;
}

}  // namespace tfc::passes
