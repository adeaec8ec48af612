#include "passes/plan/schedule.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/check.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// The nodes that a node reads, each once.
std::vector<NodeId> operand_nodes(const Graph& graph, NodeId id) {
  std::vector<NodeId> nodes;
  for (Value operand : graph.operands(id)) {
    if (operand.valid()) nodes.push_back(operand.node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool runs(const Node& node) { return ir::info(node.op).op_class != ir::OpClass::Leaf; }

class Scheduler {
 public:
  Scheduler(const Graph& graph, const ir::Point& point) : graph_(graph), point_(point) {
    const size_t capacity = graph.node_capacity();
    waits_for_.resize(capacity);
    waits_for_others_.resize(capacity);
    wanted_.resize(capacity);
    must_follow_.resize(capacity);
    readers_left_.resize(capacity);
    is_output_.resize(capacity);
    ready_cost_.resize(capacity);
  }

  std::vector<NodeId> run() {
    const std::vector<NodeId> nodes = graph_.nodes();
    for (const ir::Output& output : graph_.outputs) is_output_[output.value.node.index] = true;
    for (NodeId id : nodes) count(id);
    for (NodeId id : nodes) {
      if (!runs(graph_.node(id))) continue;
      if (waits_for_others_[id.index] == 0 && !is_late(id)) want_operands(id);
      if (waits_for_[id.index] == 0) make_ready(id);
    }
    while (!ready_.empty()) execute(take());
    TFC_CHECK(order_.size() == to_run_, "the schedule stops at a cycle, made by a donated value's readers");
    return order_;
  }

 private:
  bool is_late(NodeId id) const { return graph_.node(id).late; }

  void count(NodeId id) {
    const Node& node = graph_.node(id);
    const std::vector<NodeId> distinct = operand_nodes(graph_, id);
    for (NodeId operand : distinct) {
      ++readers_left_[operand.index];
      if (runs(graph_.node(operand))) wait_for(id, operand);
    }
    if (!runs(node)) return;
    ++to_run_;
    for (uint32_t i = 0; i < node.results.size(); ++i) {
      const int slot = donated_operand(node, i);
      if (slot < 0) continue;
      const Value donated = graph_.operand(id, static_cast<uint32_t>(slot));
      for (const ir::Use& use : graph_.uses(donated)) {  // who still reads the old value goes first
        if (use.node == id || std::binary_search(distinct.begin(), distinct.end(), use.node)) continue;
        must_follow_[use.node.index].push_back(id);
        wait_for(id, use.node);
      }
    }
  }

  void wait_for(NodeId id, NodeId first) {
    ++waits_for_[id.index];
    if (!is_late(first)) ++waits_for_others_[id.index];
  }

  /// A node waits for late ones alone: their time has come, and that of the late ones that they read.
  void want_operands(NodeId id) {
    for (NodeId operand : operand_nodes(graph_, id)) {
      if (!is_late(operand) || wanted_[operand.index]) continue;
      wanted_[operand.index] = true;
      want_operands(operand);
      if (waits_for_[operand.index] == 0) make_ready(operand);
    }
  }

  /// Bytes that the node needs minus those that it frees, at the point.
  int64_t cost(NodeId id) const {
    const Node& node = graph_.node(id);
    int64_t bytes = 0;
    if (node.op != OpKind::Split && !is_output_[id.index]) {
      for (uint32_t i = 0; i < node.results.size(); ++i) {
        if (donated_operand(node, i) < 0 && !graph_.uses({id, i}).empty())
          bytes += node.results[i].bytes().at(point_);
      }
    }
    const std::vector<NodeId> distinct = operand_nodes(graph_, id);
    for (NodeId operand : distinct) {
      const Node& producer = graph_.node(operand);
      if (!runs(producer) || readers_left_[operand.index] > 1 || is_output_[operand.index]) continue;
      for (const ir::Type& type : producer.results) bytes -= type.bytes().at(point_);
    }
    return bytes;
  }

  using Key = std::tuple<bool, bool, NodeId>;  // frees nothing, not late, id
  Key key(NodeId id) const { return {ready_cost_[id.index] > 0, !is_late(id), id}; }

  void make_ready(NodeId id) {
    if (is_late(id) && !wanted_[id.index]) return;
    ready_cost_[id.index] = cost(id);
    ready_.insert(key(id));
    is_ready_.insert(id);
  }

  NodeId take() {
    const NodeId id = std::get<NodeId>(*ready_.begin());
    ready_.erase(ready_.begin());
    is_ready_.erase(id);
    return id;
  }

  void execute(NodeId id) {
    order_.push_back(id);
    const std::vector<NodeId> distinct = operand_nodes(graph_, id);
    for (NodeId operand : distinct) {
      if (--readers_left_[operand.index] == 1 && runs(graph_.node(operand))) reconsider_readers(operand);
    }
    for (NodeId user : graph_.users(id)) release(user, id);
    for (NodeId follower : must_follow_[id.index]) release(follower, id);
  }

  void release(NodeId id, NodeId first) {
    if (!is_late(first) && --waits_for_others_[id.index] == 0 && !is_late(id)) want_operands(id);
    if (--waits_for_[id.index] == 0) make_ready(id);
  }

  /// One reader is left: if it is ready, it has become cheaper.
  void reconsider_readers(NodeId operand) {
    for (NodeId user : graph_.users(operand)) {
      if (!is_ready_.contains(user)) continue;
      ready_.erase(key(user));
      ready_cost_[user.index] = cost(user);
      ready_.insert(key(user));
    }
  }

  const Graph& graph_;
  const ir::Point& point_;
  std::vector<int> waits_for_;  // operands and readers of donated values that have not run
  std::vector<int> waits_for_others_;  // of these the ones that are not late
  std::vector<bool> wanted_;           // late nodes that may run
  std::vector<std::vector<NodeId>> must_follow_;
  std::vector<int> readers_left_;  // nodes that have still to read one of the results
  std::vector<bool> is_output_;
  std::vector<int64_t> ready_cost_;
  std::set<Key> ready_;
  std::set<NodeId> is_ready_;
  std::vector<NodeId> order_;
  size_t to_run_ = 0;
};

}  // namespace

int donated_operand(const Node& node, uint32_t result) {
  if (node.donates < 0) return -1;
  if (node.op == OpKind::AdamW) {
    constexpr int operands[] = {0, 2, 3, 1};
    return operands[result];
  }
  return result == 0 ? node.donates : -1;
}

std::vector<NodeId> schedule(const Graph& graph, const ir::Point& point) {
  return Scheduler(graph, point).run();
}

}  // namespace tfc::passes
