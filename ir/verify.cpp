// What must hold of a module, whoever made it: a pass, or the author of a dump.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/algorithms.h"
#include "ir/module.h"
#include "ir/op_attributes.h"
#include "ir/read.h"
#include "ir/edits.h"
#include "ir/verify_plan.h"

namespace tfc::ir {
namespace {

constexpr int kEnoughErrors = 20;
constexpr int64_t kMostElements = int64_t{1} << 48;  // of one parameter

/// Which classes of operations may stand in a graph of the phase. Bodies of fused nodes hold primitives.
bool is_legal(OpKind kind, Phase phase, bool in_body) {
  const OpClass op_class = info(kind).op_class;
  if (kind == OpKind::Argument) return in_body;
  if (in_body)
    return op_class == OpClass::Primitive || op_class == OpClass::GradientPrimitive || kind == OpKind::Zeros;
  if (kind == OpKind::State) return phase >= Phase::Ops;  // of edits; all else from Joint on
  switch (op_class) {
    case OpClass::Leaf:
      return true;
    case OpClass::Block:
      return phase == Phase::Blocks;
    case OpClass::Primitive:
      return phase >= Phase::Ops;
    case OpClass::GradientPrimitive:
      return phase >= Phase::Joint;
    case OpClass::Fused:
      return phase >= Phase::Fused;
  }
  return false;
}

constexpr std::string_view kEntries[] = {"infer", "last", "loss",   "logprobs", "train",
                                         "vjp",   "step", "decode", "encode",   "merge"};

class Verifier {
 public:
  Verifier(const Module& module, Diagnostics& diagnostics, const DumpPlaces* places)
      : module_(module),
        diagnostics_(diagnostics),
        places_(places),
        parameter_number_(parameter_numbers(module)) {}

  bool run() {
    parameters();
    if (errors_ > 0) return false;  // no offset of theirs means anything
    std::set<std::string> names;
    for (const Entry& entry : module_.entries) {
      entry_ = entry.name;
      if (!names.insert(entry.name).second) complain("there are two entries of this name");
      entry_name(entry);
      graph(entry.graph, nullptr);
      plan(entry);
    }
    return errors_ == 0;
  }

 private:
  void parameters();
  void entry_name(const Entry& entry);
  void graph(const Graph& graph, const Node* fused);
  void gradients_are_apart(const Graph& graph);
  void node(const Graph& graph, NodeId id, const Node* fused);
  void leaf(const Graph& graph, const Node& node);
  void memory(const Node& node, const std::string& name);
  void results(const Graph& graph, NodeId id);
  void body(const Graph& graph, NodeId id);
  void donation(const Graph& graph, NodeId id);
  void plan(const Entry& entry);

  void complain(const std::string& what, const Node* node = nullptr) {
    if (++errors_ > kEnoughErrors) return;
    Place place;
    std::string message = entry_.empty() ? "" : "in entry " + entry_ + ": ";
    if (node != nullptr) {
      place = node->place;
      message += "%" + node->name + " (" + std::string(info(node->op).text) + "): ";
      if (places_ != nullptr) {
        const auto found = places_->find({entry_, node->name});
        if (found != places_->end()) place = found->second;
      }
    }
    diagnostics_.error(std::move(place), message + what);
  }

  const Module& module_;
  Diagnostics& diagnostics_;
  const DumpPlaces* places_;
  const std::unordered_map<std::string_view, size_t> parameter_number_;
  std::string entry_;
  int errors_ = 0;
};

// ---- parameters ----

void Verifier::parameters() {
  Module laid_out;
  laid_out.parameters = module_.parameters;
  std::set<std::string> names;
  for (size_t i = 0; i < module_.parameters.size(); ++i) {
    const Parameter& parameter = module_.parameters[i];
    const std::string what = "parameter '" + parameter.name + "' ";
    if (!names.insert(parameter.name).second) complain(what + "is there twice");
    if (parameter.shape.empty() || parameter.shape.size() > 4)
      complain(what + "has rank " + std::to_string(parameter.shape.size()) + ", expected 1 to 4");
    int64_t elements = 1;
    for (const int64_t size : parameter.shape)
      if (size <= 0 || __builtin_mul_overflow(elements, size, &elements) || elements > kMostElements) {
        complain(what + "has the shape " + attribute_text(parameter.shape) +
                 ", expected sizes from 1 up, and fewer "
                 "than 2^48 elements");
        return;
      }
    if (!parameter.joins_previous) continue;
    const std::vector<int64_t> before = i > 0 ? module_.parameters[i - 1].shape : std::vector<int64_t>();
    if (before.size() != parameter.shape.size() ||
        !std::equal(before.begin() + (before.empty() ? 0 : 1), before.end(), parameter.shape.begin() + 1))
      complain(what + "joins the one before it, whose shape differs past the first axis");
    if (i > 0 && module_.parameters[i - 1].frozen != parameter.frozen)
      complain(what + "joins the one before it, and one of them alone is frozen");
  }
  lay_out_parameters(laid_out);
  for (size_t i = 0; i < module_.parameters.size(); ++i)
    if (laid_out.parameters[i].offset != module_.parameters[i].offset)
      complain("parameter '" + module_.parameters[i].name + "' is at " +
               std::to_string(module_.parameters[i].offset) + ", the layout puts it at " +
               std::to_string(laid_out.parameters[i].offset));
}

// ---- graphs ----

void Verifier::entry_name(const Entry& entry) {
  if (module_.phase <= Phase::Ops) {
    if (entry.name != "model")
      complain("phase " + std::string(phase_name(module_.phase)) +
               " has one entry, expected it to be called model");
    return;
  }
  if (std::find(std::begin(kEntries), std::end(kEntries), entry.name) == std::end(kEntries))
    complain("there is no entry of this name from phase joint on");
}

void Verifier::graph(const Graph& graph, const Node* fused) {
  if (has_cycle(graph)) {
    complain("the graph has a cycle", fused);
    return;
  }
  if (graph.real != module_.real) complain("the graph's real type is not the module's", fused);
  for (const NodeId id : graph.nodes()) node(graph, id, fused);
  std::set<std::string> names;
  for (const Output& output : graph.outputs) {
    if (!output.value.valid()) complain("output '" + output.name + "' has no value", fused);
    if (!names.insert(output.name).second && fused == nullptr)
      complain("there are two outputs called '" + output.name + "'");
  }
  gradients_are_apart(graph);
}

/// Each output adds to what the memory held at the start, so that of two for one parameter the later would take back
/// what the earlier added: "grads:k" beside "grads:k+v".
void Verifier::gradients_are_apart(const Graph& graph) {
  constexpr std::string_view space = "grads:";
  std::set<std::string> given;
  for (const Output& output : graph.outputs) {
    if (!output.name.starts_with(space)) continue;
    for (std::string& name : split_joined_name(std::string_view(output.name).substr(space.size())))
      if (!given.insert(name).second) complain("two outputs give the gradient of '" + name + "'");
  }
}

void Verifier::node(const Graph& graph, NodeId id, const Node* fused) {
  const Node& node = graph.node(id);
  const OpInfo& op = info(node.op);
  if (!is_legal(node.op, module_.phase, fused != nullptr)) {
    complain(fused ? "may not stand in the body of a fused node"
                   : "may not stand in phase " + std::string(phase_name(module_.phase)),
             &node);
    return;
  }
  const int operands = static_cast<int>(graph.operand_count(id));
  if (operands < op.least_operands || (op.most_operands >= 0 && operands > op.most_operands)) {
    std::string expected = std::to_string(op.least_operands);
    if (op.most_operands < 0) expected += " or more";
    if (op.most_operands > op.least_operands) expected += " to " + std::to_string(op.most_operands);
    complain("has " + std::to_string(operands) + " operands, expected " + expected, &node);
    return;
  }
  if (op.results >= 0 && static_cast<int>(node.results.size()) != op.results) {
    complain(
        "has " + std::to_string(node.results.size()) + " results, expected " + std::to_string(op.results),
        &node);
    return;
  }
  for (const Type& type : node.results)
    for (const Dim& dim : type.shape)
      if (dim.constant().value_or(1) <= 0) {
        complain("its type " + type.text() + " has a size below 1", &node);
        return;
      }
  if (const std::string wrong = check_attributes(node.op, node.attributes); !wrong.empty()) {
    complain(wrong, &node);
    return;
  }
  if ((node.body != nullptr) != (node.op == OpKind::Fused)) {
    complain(node.body ? "has a body, only fused nodes do" : "has no body", &node);
    return;
  }
  if (op.op_class == OpClass::Leaf) leaf(graph, node);
  if (is_primitive(node.op)) results(graph, id);
  if (node.op == OpKind::Fused) body(graph, id);
  if (node.donates != -1) donation(graph, id);
}

void Verifier::leaf(const Graph& graph, const Node& node) {
  if (node.op == OpKind::Param) memory(node, node.attributes.text("name"));
  if (node.op != OpKind::State) return;
  const std::string& space = node.attributes.text("space");
  if (space == kEditsSpace) {
    if (node.results[0].rank() < 1 || node.results[0].rank() > kMostEditedRank)
      complain("is " + node.results[0].text() + ", edits are of 1 to " + std::to_string(kMostEditedRank) + " dimensions", &node);
    return;
  }
  if (module_.phase < Phase::Joint) return complain("space '" + space + "' is of the phases from joint on", &node);
  if (space == "cache") return;
  if (space != "params" && space != "grads" && space != "moment1" && space != "moment2") {
    complain("space '" + space + "' is unknown, expected params, grads, moment1, moment2, cache or edits", &node);
    return;
  }
  const std::string& name = node.attributes.text("name");
  if (name != "*") {
    memory(node, name);
    return;
  }
  const Type trained{module_.real, {Dim(module_.trained_block())}};
  if (node.results[0] != trained)
    complain("is " + node.results[0].text() + ", the block of what is trained is " + trained.text(), &node);
}

/// A leaf that reads parameter memory: "a", or neighbours "a+b+c" as one matrix.
void Verifier::memory(const Node& node, const std::string& name) {
  Type expected{module_.real, {}};
  size_t next = 0;
  for (const std::string& part : split_joined_name(name)) {
    const auto found = parameter_number_.find(part);
    if (found == parameter_number_.end()) {
      std::vector<std::string> known;
      for (const Parameter& parameter : module_.parameters) known.push_back(parameter.name);
      const std::string near = nearest_name(part, known);
      complain(
          "there is no parameter '" + part + "'" + (near.empty() ? "" : ", did you mean '" + near + "'?"),
          &node);
      return;
    }
    const Parameter& parameter = module_.parameters[found->second];
    const Shape shape(parameter.shape.begin(), parameter.shape.end());
    if (expected.shape.empty()) {
      expected.shape = shape;
    } else if (found->second != next || !parameter.joins_previous) {
      complain("'" + part + "' does not join the parameter before it in '" + name + "'", &node);
      return;
    } else {
      expected.shape[0] = expected.shape[0] + shape[0];
    }
    next = found->second + 1;
  }
  if (node.results[0] != expected)
    complain("is " + node.results[0].text() + ", parameter '" + name + "' is " + expected.text(), &node);
}

void Verifier::results(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<const Type*> types;
  for (const Value operand : graph.operands(id))
    types.push_back(operand.valid() ? &graph.type(operand) : nullptr);
  InferContext context{types, node.attributes, module_.real, {}, {}};
  infer(node.op, context);
  if (!context.error.empty()) {
    complain(context.error, &node);
    return;
  }
  if (context.results == node.results) return;
  std::string expected, found;
  for (const Type& type : context.results) expected += (expected.empty() ? "" : ", ") + type.text();
  for (const Type& type : node.results) found += (found.empty() ? "" : ", ") + type.text();
  complain("its result is " + found + ", the operands give " + expected, &node);
}

void Verifier::body(const Graph& outer, NodeId id) {
  const Node& node = outer.node(id);
  const Graph& body = *node.body;
  const std::vector<Value> operands = outer.operands(id);
  graph(body, &node);
  for (const NodeId inner : body.nodes()) {
    const Node& argument = body.node(inner);
    if (argument.op != OpKind::Argument || !argument.attributes.has("index")) continue;
    const Attribute* number = argument.attributes.find("index");
    const int64_t* index = std::get_if<int64_t>(number);
    if (index == nullptr) continue;  // complained of above
    if (*index < 0 || *index >= static_cast<int64_t>(operands.size()) ||
        !operands[static_cast<size_t>(*index)].valid()) {
      complain("the fused node has no operand " + std::to_string(*index), &argument);
    } else if (argument.results[0] != outer.type(operands[static_cast<size_t>(*index)])) {
      complain("is " + argument.results[0].text() + ", the fused node's operand is " +
                   outer.type(operands[static_cast<size_t>(*index)]).text(),
               &argument);
    }
  }
  if (body.outputs.size() != node.results.size()) {
    complain("has " + std::to_string(node.results.size()) + " results, its body " +
                 std::to_string(body.outputs.size()) + " outputs",
             &node);
    return;
  }
  for (size_t i = 0; i < node.results.size(); ++i)
    if (body.outputs[i].value.valid() && body.type(body.outputs[i].value) != node.results[i])
      complain("result " + std::to_string(i) + " is " + node.results[i].text() + ", its body gives " +
                   body.type(body.outputs[i].value).text(),
               &node);
}

/// A donated value's memory is taken over: whoever else reads it must be able to run before.
void Verifier::donation(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const int last = node.op == OpKind::AdamW ? 3 : node.donates;
  if (node.donates < 0 || last >= static_cast<int>(graph.operand_count(id)) ||
      (node.op == OpKind::AdamW && node.donates != 0)) {
    complain("donates operand " + std::to_string(node.donates) + ", which it does not have", &node);
    return;
  }
  std::vector<bool> after;  // what needs this node; asked for only where the value has other readers
  for (int slot = node.donates; slot <= last; ++slot) {
    const Value donated = graph.operand(id, static_cast<uint32_t>(slot));
    if (!donated.valid()) {
      complain("donates operand " + std::to_string(slot) + ", which is absent", &node);
      continue;
    }
    const std::string name = "%" + graph.node(donated.node).name;
    if (node.op != OpKind::AdamW && graph.type(donated) != node.results[0])
      complain("takes over the memory of " + name + ", which has another type", &node);
    for (const Use& use : graph.uses(donated)) {
      if (use.node == id && use.slot == static_cast<uint32_t>(slot)) continue;
      if (after.empty()) after = descendants(graph, {id});
      if (after[use.node.index])
        complain(
            "takes over the memory of " + name + ", which %" + graph.node(use.node).name + " reads later",
            &node);
    }
    for (const Output& output : graph.outputs)
      if (output.value == donated)
        complain("takes over the memory of " + name + ", which is the output '" + output.name + "'", &node);
  }
}

void Verifier::plan(const Entry& entry) {
  if (!entry.plan) {
    if (module_.phase == Phase::Planned) complain("has no plan, which phase planned needs");
    return;
  }
  if (module_.phase < Phase::Fused) {
    complain("has a plan, which phase " + std::string(phase_name(module_.phase)) + " does not know");
    return;
  }
  for (const std::string& wrong : plan_faults(*entry.plan, module_)) complain("plan: " + wrong);
}

}  // namespace

bool verify(const Module& module, Diagnostics& diagnostics, const DumpPlaces* places) {
  return Verifier(module, diagnostics, places).run();
}

bool verify(const Module& module, Diagnostics& diagnostics) { return verify(module, diagnostics, nullptr); }

}  // namespace tfc::ir
