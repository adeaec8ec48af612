#include "ir/graph.h"

#include <algorithm>

#include "ir/algorithms.h"
#include "ir/check.h"
#include "ir/graph_impl.h"

namespace tfc::ir {

Graph::Graph() : impl_(std::make_unique<Impl>()) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph::Graph(const Graph& other)
    : real(other.real), outputs(other.outputs), impl_(std::make_unique<Impl>(*other.impl_)) {
  for (size_t v = 0; v < node_capacity(); ++v) {  // so far both graphs point to the same nodes
    std::shared_ptr<Node>& node = impl_->graph[v].node;
    if (!node) continue;
    node = std::make_shared<Node>(*node);
    if (node->body) node->body = std::make_shared<Graph>(*node->body);
  }
}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

// ---- reading ----

size_t Graph::node_capacity() const { return boost::num_vertices(impl_->graph); }
size_t Graph::node_count() const { return impl_->living; }

bool Graph::alive(NodeId id) const {
  return id.index < node_capacity() && impl_->graph[id.index].node != nullptr;
}

const Node& Graph::node(NodeId id) const {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  return *impl_->graph[id.index].node;
}
Node& Graph::node(NodeId id) { return const_cast<Node&>(static_cast<const Graph*>(this)->node(id)); }

NodeId Graph::find(const std::string& name) const {
  const auto found = impl_->by_name.find(name);
  return found == impl_->by_name.end() ? NodeId{} : found->second;
}

std::vector<NodeId> Graph::nodes() const {
  std::vector<NodeId> list;
  list.reserve(node_count());
  for (uint32_t v = 0; v < node_capacity(); ++v)
    if (alive({v})) list.push_back({v});
  return list;
}

size_t Graph::operand_count(NodeId id) const {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  return impl_->graph[id.index].operand_count;
}

std::vector<Value> Graph::operands(NodeId id) const {
  std::vector<Value> list(operand_count(id));
  const auto [begin, end] = boost::in_edges(id.index, impl_->graph);
  for (auto edge = begin; edge != end; ++edge) {
    const OperandEdge& use = impl_->graph[*edge];
    list[use.slot] = {{static_cast<uint32_t>(boost::source(*edge, impl_->graph))}, use.result};
  }
  return list;
}

Value Graph::operand(NodeId id, uint32_t slot) const {
  if (slot >= operand_count(id)) return {};
  const auto [begin, end] = boost::in_edges(id.index, impl_->graph);
  for (auto edge = begin; edge != end; ++edge)
    if (impl_->graph[*edge].slot == slot)
      return {{static_cast<uint32_t>(boost::source(*edge, impl_->graph))}, impl_->graph[*edge].result};
  return {};
}

std::vector<Use> Graph::uses(Value value) const {
  TFC_CHECK(alive(value.node), "there is no node with id " + std::to_string(value.node.index));
  std::vector<Use> list;
  const auto [begin, end] = boost::out_edges(value.node.index, impl_->graph);
  for (auto edge = begin; edge != end; ++edge)
    if (impl_->graph[*edge].result == value.result)
      list.push_back({{static_cast<uint32_t>(boost::target(*edge, impl_->graph))}, impl_->graph[*edge].slot});
  std::sort(list.begin(), list.end(),
            [](const Use& a, const Use& b) { return std::tie(a.node, a.slot) < std::tie(b.node, b.slot); });
  return list;
}

std::vector<NodeId> Graph::users(NodeId id) const {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  std::vector<NodeId> list;
  const auto [begin, end] = boost::out_edges(id.index, impl_->graph);
  for (auto edge = begin; edge != end; ++edge) {  // in order of the target's id
    const NodeId user{static_cast<uint32_t>(boost::target(*edge, impl_->graph))};
    if (list.empty() || list.back() != user) list.push_back(user);
  }
  return list;
}

const Type& Graph::type(Value value) const {
  const Node& producer = node(value.node);
  TFC_CHECK(value.result < producer.results.size(),
            "%" + producer.name + " has " + std::to_string(producer.results.size()) +
                " results, there is no number " + std::to_string(value.result));
  return producer.results[value.result];
}

Value Graph::output(std::string_view name) const {
  for (const Output& output : outputs)
    if (output.name == name) return output.value;
  return {};
}

// ---- editing ----

NodeId Graph::add_node(Node node, const std::vector<Value>& operands) {
  if (node.name.empty()) node.name = info(node.op).text;
  if (impl_->by_name.contains(node.name)) {
    int& suffix = impl_->last_suffix.try_emplace(node.name, 1).first->second;
    std::string candidate;
    do {
      candidate = node.name + '.' + std::to_string(++suffix);
    } while (impl_->by_name.contains(candidate));
    node.name = std::move(candidate);
  }
  const NodeId id{static_cast<uint32_t>(node_capacity())};
  impl_->by_name.emplace(node.name, id);
  NodeCell cell{std::make_shared<Node>(std::move(node)), static_cast<uint32_t>(operands.size())};
  boost::add_vertex(std::move(cell), impl_->graph);
  ++impl_->living;
  for (uint32_t slot = 0; slot < operands.size(); ++slot)
    if (operands[slot].valid()) set_operand(id, slot, operands[slot]);
  return id;
}

static std::string misfit(const Graph& graph, OpKind op, const std::string& name,
                          const std::vector<Value>& operands, const Attributes& attributes,
                          const std::string& why) {
  std::string text = why + ", in %" + name + " = " + std::string(info(op).text) + "(";
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) text += ", ";
    text += operands[i].valid()
                ? "%" + graph.node(operands[i].node).name + " : " + graph.type(operands[i]).text()
                : "_";
  }
  return text + ") " + attributes.print();
}

NodeId Graph::add(OpKind op, const std::vector<Value>& operands, Attributes attributes, std::string name,
                  Place place) {
  std::vector<const Type*> types;
  types.reserve(operands.size());
  for (const Value operand : operands) types.push_back(operand.valid() ? &type(operand) : nullptr);
  InferContext context{types, attributes, real, {}, {}};
  const OpInfo& op_info = info(op);
  const int count = static_cast<int>(operands.size());
  if (count < op_info.least_operands || (op_info.most_operands >= 0 && count > op_info.most_operands)) {
    context.error = std::to_string(count) + " operands do not suit " + std::string(op_info.text);
  } else {
    infer(op, context);
  }
  TFC_CHECK(context.error.empty(), misfit(*this, op, name, operands, attributes, context.error));
  Node node;
  node.op = op;
  node.attributes = std::move(attributes);
  node.name = std::move(name);
  node.place = std::move(place);
  node.results = std::move(context.results);
  return add_node(std::move(node), operands);
}

void Graph::set_operand(NodeId id, uint32_t slot, Value value) {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  BoostGraph& graph = impl_->graph;
  const auto [begin, end] = boost::in_edges(id.index, graph);
  const auto old = std::find_if(begin, end, [&](const auto& edge) { return graph[edge].slot == slot; });
  if (old != end) boost::remove_edge(*old, graph);
  graph[id.index].operand_count = std::max(graph[id.index].operand_count, slot + 1);
  if (!value.valid()) return;
  type(value);  // checks that there is such a value
  boost::add_edge(value.node.index, id.index, OperandEdge{slot, value.result}, graph);
}

void Graph::replace_uses(Value from, Value to) {
  if (from == to) return;
  for (const Use& use : uses(from))
    if (use.node != to.node) set_operand(use.node, use.slot, to);
  for (Output& output : outputs)
    if (output.value == from) output.value = to;
}

void Graph::erase(NodeId id) {
  const Node& dead = node(id);
  TFC_CHECK(boost::out_degree(id.index, impl_->graph) == 0,
            "%" + dead.name + " is erased but still has users");
  for (const Output& output : outputs)
    TFC_CHECK(output.value.node != id, "%" + dead.name + " is erased but is the output " + output.name);
  impl_->by_name.erase(dead.name);
  boost::clear_vertex(id.index, impl_->graph);
  impl_->graph[id.index] = NodeCell{};
  --impl_->living;
}

size_t Graph::erase_unreachable() {
  std::vector<NodeId> roots;
  for (const Output& output : outputs)
    if (output.value.valid()) roots.push_back(output.value.node);
  const std::vector<bool> needed = ancestors(*this, roots);
  std::vector<NodeId> order = topological_order(*this);
  size_t erased = 0;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {  // users before operands
    if (needed[id->index]) continue;
    impl_->by_name.erase(node(*id).name);
    boost::clear_vertex(id->index, impl_->graph);
    impl_->graph[id->index] = NodeCell{};
    ++erased;
  }
  impl_->living -= erased;
  return erased;
}

void Graph::compact() {
  const std::vector<NodeId> order = topological_order(*this);
  std::vector<NodeId> renumbered(node_capacity());
  for (uint32_t i = 0; i < order.size(); ++i) renumbered[order[i].index] = {i};
  auto fresh = std::make_unique<Impl>();
  fresh->last_suffix = std::move(impl_->last_suffix);
  fresh->living = order.size();
  for (uint32_t i = 0; i < order.size(); ++i) {
    NodeCell& cell = impl_->graph[order[i].index];
    fresh->by_name.emplace(cell.node->name, NodeId{i});
    boost::add_vertex(cell, fresh->graph);
    const auto [begin, end] = boost::in_edges(order[i].index, impl_->graph);
    for (auto edge = begin; edge != end; ++edge)
      boost::add_edge(renumbered[boost::source(*edge, impl_->graph)].index, i, impl_->graph[*edge],
                      fresh->graph);
  }
  for (Output& output : outputs)
    if (output.value.valid()) output.value.node = renumbered[output.value.node.index];
  impl_ = std::move(fresh);
}

}  // namespace tfc::ir
