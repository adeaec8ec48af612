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
    : real(other.real), outputs(other.outputs), impl_(std::make_unique<Impl>(*other.impl_)) {}

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

Node& Graph::edit(NodeId id) {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  std::shared_ptr<Node>& own = impl_->graph[id.index].node;
  if (own.use_count() > 1) {
    impl_->by_name.erase(own->name);
    own = std::make_shared<Node>(*own);
    impl_->by_name.emplace(own->name, id);
  }
  return *own;
}

NodeId Graph::find(std::string_view name) const {
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

size_t Graph::operand_count(NodeId id) const { return operands(id).size(); }

const std::vector<Value>& Graph::operands(NodeId id) const {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  return impl_->graph[id.index].operands;
}

Value Graph::operand(NodeId id, uint32_t slot) const {
  const std::vector<Value>& list = operands(id);
  return slot < list.size() ? list[slot] : Value{};
}

std::vector<NodeId> Graph::users(NodeId id) const {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  std::vector<NodeId> list;
  const auto [begin, end] = boost::adjacent_vertices(id.index, impl_->graph);
  for (auto user = begin; user != end; ++user) list.push_back({static_cast<uint32_t>(*user)});
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<Use> Graph::uses(Value value) const {
  std::vector<Use> list;
  for (const NodeId user : users(value.node)) {
    const std::vector<Value>& operands = impl_->graph[user.index].operands;
    for (uint32_t slot = 0; slot < operands.size(); ++slot)
      if (operands[slot] == value) list.push_back({user, slot});
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
  return insert(std::make_shared<Node>(std::move(node)), operands);
}

NodeId Graph::add_shared(const Graph& other, NodeId node, std::vector<Value> operands) {
  const std::shared_ptr<Node>& shared = other.impl_->graph[node.index].node;
  if (impl_->by_name.contains(shared->name)) return add_node(*shared, operands);  // by another name
  return insert(shared, std::move(operands));
}

NodeId Graph::insert(std::shared_ptr<Node> node, std::vector<Value> operands) {
  const NodeId id{static_cast<uint32_t>(node_capacity())};
  impl_->by_name.emplace(node->name, id);
  ++impl_->living;
  boost::add_vertex(NodeCell{std::move(node), std::move(operands)}, impl_->graph);
  for (const Value operand : impl_->graph[id.index].operands) {
    if (!operand.valid()) continue;
    type(operand);  // checks that there is such a value
    boost::add_edge(operand.node.index, id.index, impl_->graph);
  }
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

void Graph::disconnect(NodeId operand, NodeId user) {
  const auto [begin, end] = boost::out_edges(operand.index, impl_->graph);
  const auto edge =
      std::find_if(begin, end, [&](const auto& e) { return boost::target(e, impl_->graph) == user.index; });
  boost::remove_edge(edge, impl_->graph);
}

void Graph::set_operand(NodeId id, uint32_t slot, Value value) {
  TFC_CHECK(alive(id), "there is no node with id " + std::to_string(id.index));
  if (value.valid()) type(value);  // checks that there is such a value
  std::vector<Value>& operands = impl_->graph[id.index].operands;
  if (operands.size() <= slot) operands.resize(slot + 1);
  if (operands[slot].valid()) disconnect(operands[slot].node, id);
  operands[slot] = value;
  if (value.valid()) boost::add_edge(value.node.index, id.index, impl_->graph);
}

/// All edges of the old value's node are made anew, for its readers may be many.
void Graph::replace_uses(Value from, Value to) {
  if (from == to) return;
  type(to);  // checks that there is such a value
  const std::vector<NodeId> readers = users(from.node);
  boost::clear_out_edges(from.node.index, impl_->graph);
  for (const NodeId reader : readers) {
    for (Value& operand : impl_->graph[reader.index].operands) {
      if (operand.node != from.node) continue;
      const bool moves = operand == from && reader != to.node;
      if (moves) operand = to;
      boost::add_edge(operand.node.index, reader.index, impl_->graph);
    }
  }
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
  for (const Value operand : operands(id))
    if (operand.valid()) disconnect(operand.node, id);
  impl_->graph[id.index] = NodeCell{};
  --impl_->living;
}

size_t Graph::erase_unreachable() {
  std::vector<NodeId> roots;
  for (const Output& output : outputs)
    if (output.value.valid()) roots.push_back(output.value.node);
  const std::vector<bool> needed = ancestors(*this, roots);
  BoostGraph& graph = impl_->graph;
  size_t erased = 0;
  for (const NodeId id : nodes()) {
    if (needed[id.index]) {
      boost::remove_out_edge_if(
          id.index, [&](const auto& edge) { return !needed[boost::target(edge, graph)]; }, graph);
      continue;
    }
    impl_->by_name.erase(node(id).name);
    boost::clear_out_edges(id.index, graph);
    graph[id.index] = NodeCell{};
    ++erased;
  }
  impl_->living -= erased;
  return erased;
}

void Graph::compact() {
  const std::vector<NodeId> order = topological_order(*this);
  std::vector<NodeId> renumbered(node_capacity());
  for (uint32_t i = 0; i < order.size(); ++i) renumbered[order[i].index] = {i};
  auto fresh = std::make_unique<Impl>(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    NodeCell& cell = fresh->graph[i] = std::move(impl_->graph[order[i].index]);
    for (Value& operand : cell.operands) {
      if (!operand.valid()) continue;
      operand.node = renumbered[operand.node.index];
      boost::add_edge(operand.node.index, i, fresh->graph);
    }
  }
  fresh->living = order.size();
  fresh->by_name = std::move(impl_->by_name);
  for (auto& [name, id] : fresh->by_name) id = renumbered[id.index];
  fresh->last_suffix = std::move(impl_->last_suffix);
  impl_ = std::move(fresh);
  for (Output& output : outputs)
    if (output.value.valid()) output.value.node = renumbered[output.value.node.index];
}

}  // namespace tfc::ir
