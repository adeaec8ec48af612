#include "passes/join_linears.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/algorithms.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// A linear whose weight is one parameter, and the place of its parameters in the layout.
struct Candidate {
  NodeId id;
  std::string prefix;  // "layers.0.attn.q"
  size_t part = 0;     // index of "q" in the names
  size_t weight = 0;   // index of the weight in Module::parameters
  bool has_bias = false;
  size_t bias = 0;
};

class Joiner {
 public:
  Joiner(const ir::Module& module, Graph& graph, std::span<const std::string_view> parts)
      : module_(module), graph_(graph), parts_(parts), index_(ir::parameter_numbers(module)) {}

  /// Returns the prefixes of each group that was joined.
  std::vector<std::string> run(std::vector<ir::Place>& places) {
    std::map<Value, std::vector<Candidate>> by_input;
    std::vector<Value> inputs;  // in order of first appearance
    for (NodeId id : ir::topological_order(graph_)) {
      Candidate candidate;
      if (!recognise(id, candidate)) continue;
      std::vector<Candidate>& group = by_input[graph_.operand(id, 0)];
      if (group.empty()) inputs.push_back(graph_.operand(id, 0));
      group.push_back(std::move(candidate));
    }
    std::vector<std::string> joined;
    for (Value input : inputs) join_neighbours(by_input.at(input), joined, places);
    return joined;
  }

 private:
  bool recognise(NodeId id, Candidate& candidate) const {
    if (graph_.node(id).op != OpKind::Linear) return false;
    const std::string weight = parameter_name(graph_.operand(id, 1));
    constexpr std::string_view suffix = ".weight";
    if (!weight.ends_with(suffix) || !index_.contains(weight)) return false;
    candidate.id = id;
    candidate.prefix = weight.substr(0, weight.size() - suffix.size());
    const std::string part = candidate.prefix.substr(candidate.prefix.rfind('.') + 1);
    const auto found = std::find(parts_.begin(), parts_.end(), part);
    if (found == parts_.end()) return false;
    candidate.part = static_cast<size_t>(found - parts_.begin());
    candidate.weight = index_.at(weight);
    candidate.has_bias = graph_.operand(id, 2).valid();
    if (candidate.has_bias) {
      const std::string bias = parameter_name(graph_.operand(id, 2));
      if (!index_.contains(bias)) return false;
      candidate.bias = index_.at(bias);
    }
    return true;
  }

  std::string parameter_name(Value value) const {
    if (!value.valid() || graph_.node(value.node).op != OpKind::Param) return "";
    return graph_.node(value.node).attributes.text("name");
  }

  bool follows(size_t next, size_t previous) const {
    return next == previous + 1 && module_.parameters[next].joins_previous;
  }

  void join_neighbours(std::vector<Candidate>& group, std::vector<std::string>& joined,
                       std::vector<ir::Place>& places) {
    std::sort(group.begin(), group.end(), [](const auto& a, const auto& b) { return a.weight < b.weight; });
    for (size_t begin = 0, end; begin < group.size(); begin = end) {
      for (end = begin + 1; end < group.size(); ++end) {
        const Candidate &a = group[end - 1], &b = group[end];
        if (b.part != a.part + 1 || !follows(b.weight, a.weight) || a.has_bias != b.has_bias) break;
        if (a.has_bias && !follows(b.bias, a.bias)) break;
      }
      if (end - begin < 2) continue;
      places.push_back(graph_.node(group[begin].id).place);
      joined.push_back(join(std::span(group).subspan(begin, end - begin)));
    }
  }

  /// The parameter "a+b+c" of the group's weights or biases.
  Value joined_parameter(std::span<const Candidate> group, uint32_t slot) {
    ir::Node node;
    node.op = OpKind::Param;
    node.place = graph_.node(graph_.operand(group[0].id, slot).node).place;
    ir::Dim rows = 0;
    for (const Candidate& candidate : group) {
      const Value part = graph_.operand(candidate.id, slot);
      if (!node.name.empty()) node.name += "+";
      node.name += parameter_name(part);
      node.results = {graph_.type(part)};
      rows = rows + graph_.type(part).shape[0];
    }
    if (const NodeId known = graph_.find(node.name); known.valid()) return {known, 0};  // of a shared block
    node.results[0].shape[0] = rows;
    node.attributes.set("name", node.name);
    return {graph_.add_node(std::move(node), {}), 0};
  }

  std::string join(std::span<const Candidate> group) {
    const ir::Place place = graph_.node(group[0].id).place;
    std::string name = graph_.node(group[0].id).name;
    for (const Candidate& candidate : group.subspan(1)) name += "+" + std::string(parts_[candidate.part]);
    const Value weight = joined_parameter(group, 1);
    const Value bias = group[0].has_bias ? joined_parameter(group, 2) : Value{};
    const NodeId product =
        graph_.add(OpKind::Linear, {graph_.operand(group[0].id, 0), weight, bias}, {}, name, place);
    std::vector<int64_t> widths;
    for (const Candidate& candidate : group) {
      widths.push_back(*graph_.type(Value{candidate.id, 0}).width().constant());
    }
    const NodeId split =
        graph_.add(OpKind::Split, {Value{product, 0}}, {{"widths", widths}}, name + ".split", place);
    for (uint32_t i = 0; i < group.size(); ++i) graph_.replace_uses({group[i].id, 0}, {split, i});
    return name;
  }

  const ir::Module& module_;
  Graph& graph_;
  const std::span<const std::string_view> parts_;
  const std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace

bool join_linears(ir::Module& module, std::span<const std::string_view> parts, std::string_view pass,
                  PassContext& context) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    std::vector<ir::Place> places;
    const std::vector<std::string> joined = Joiner(module, entry.graph, parts).run(places);
    for (size_t i = 0; i < joined.size(); ++i) {
      context.diagnostics.remark(pass, places[i],
                                 "'" + joined[i] + "' is one product: the same input, neighbouring weights");
    }
    if (joined.empty()) continue;
    changed = true;
    entry.graph.erase_unreachable();
  }
  return changed;
}

}  // namespace tfc::passes
