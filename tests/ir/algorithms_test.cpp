#include "ir/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/cost.h"
#include "ir/module.h"

namespace tfc::ir {
namespace {

/// A node without meaning: only its edges matter here.
NodeId node(Graph& graph, const std::vector<NodeId>& operands) {
  Node made;
  made.op = OpKind::BlockResidual;
  made.name = "n" + std::to_string(graph.node_capacity());
  made.results = {Type{DType::F32, {1}}};
  std::vector<Value> values;
  for (const NodeId operand : operands) values.push_back({operand, 0});
  return graph.add_node(std::move(made), values);
}

Graph random_dag(std::mt19937& random, int nodes, int chance) {
  Graph graph;
  for (int i = 0; i < nodes; ++i) {
    std::vector<NodeId> operands;
    for (uint32_t j = 0; j < static_cast<uint32_t>(i); ++j)
      if (static_cast<int>(random() % 100) < chance) operands.push_back({j});
    node(graph, operands);
  }
  return graph;
}

TEST(Algorithms, TopologicalOrderTakesTheLeastReady) {
  Graph graph;
  const NodeId a = node(graph, {}), b = node(graph, {a}), c = node(graph, {}), d = node(graph, {c});
  graph.set_operand(a, 0, {d, 0});
  EXPECT_EQ(topological_order(graph), (std::vector<NodeId>{c, d, a, b}));
}

TEST(Algorithms, Cycles) {
  Graph graph;
  const NodeId a = node(graph, {}), b = node(graph, {a});
  EXPECT_FALSE(has_cycle(graph));
  graph.set_operand(a, 0, {b, 0});
  EXPECT_TRUE(has_cycle(graph));
}

TEST(Algorithms, AncestorsAndDescendants) {
  Graph graph;
  const NodeId a = node(graph, {}), b = node(graph, {a}), c = node(graph, {a});
  EXPECT_EQ(ancestors(graph, {b}), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(descendants(graph, {a}), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(descendants(graph, {c}), (std::vector<bool>{false, false, true}));
}

bool separates(const Graph& graph, NodeId source, NodeId sink, uint32_t removed) {
  if (removed >> source.index & 1 || removed >> sink.index & 1) return true;
  std::vector<bool> seen(graph.node_capacity());
  std::vector<NodeId> stack = {source};
  while (!stack.empty()) {
    const NodeId at = stack.back();
    stack.pop_back();
    if (at == sink) return false;
    for (const NodeId user : graph.users(at))
      if (!seen[user.index] && !(removed >> user.index & 1)) {
        seen[user.index] = true;
        stack.push_back(user);
      }
  }
  return true;
}

TEST(Algorithms, MinCutAgainstAllSubsets) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const int nodes = 4 + static_cast<int>(random() % 6);
    const Graph graph = random_dag(random, nodes, 45);
    std::vector<int64_t> cost;
    for (int i = 0; i < nodes; ++i)
      cost.push_back(random() % 4 == 0 ? -1 : static_cast<int64_t>(random() % 9));
    const NodeId source{0}, sink{static_cast<uint32_t>(nodes - 1)};
    cost[0] = 20;  // the ends may be cut, at a price: there always is a cut
    int64_t least = std::numeric_limits<int64_t>::max();
    for (uint32_t subset = 0; subset < 1u << nodes; ++subset) {
      int64_t sum = 0;
      bool allowed = true;
      for (int i = 0; i < nodes; ++i) {
        if (!(subset >> i & 1)) continue;
        allowed = allowed && cost[static_cast<size_t>(i)] >= 0;
        sum += cost[static_cast<size_t>(i)];
      }
      if (allowed && sum < least && separates(graph, source, sink, subset)) least = sum;
    }
    const std::vector<NodeId> cut =
        min_cut(graph, {source}, {sink}, [&](NodeId id) { return cost[id.index]; });
    int64_t sum = 0;
    uint32_t removed = 0;
    for (const NodeId id : cut) {
      EXPECT_GE(cost[id.index], 0);
      sum += cost[id.index];
      removed |= 1u << id.index;
    }
    EXPECT_TRUE(separates(graph, source, sink, removed));
    EXPECT_EQ(sum, least);
  }
}

int components(const Graph& graph, uint32_t without) {
  std::vector<bool> seen(graph.node_capacity());
  int count = 0;
  for (const NodeId start : graph.nodes()) {
    if (start.index == without || seen[start.index]) continue;
    ++count;
    std::vector<NodeId> stack = {start};
    seen[start.index] = true;
    while (!stack.empty()) {
      const NodeId at = stack.back();
      stack.pop_back();
      std::vector<NodeId> neighbours = graph.users(at);
      for (const Value operand : graph.operands(at)) neighbours.push_back(operand.node);
      for (const NodeId next : neighbours)
        if (next.index != without && !seen[next.index]) {
          seen[next.index] = true;
          stack.push_back(next);
        }
    }
  }
  return count;
}

TEST(Algorithms, ArticulationPointsAgainstRemoval) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const Graph graph = random_dag(random, 3 + static_cast<int>(random() % 8), 25);
    const std::vector<NodeId> points = articulation_points(graph);
    const int whole = components(graph, std::numeric_limits<uint32_t>::max());
    for (const NodeId id : graph.nodes()) {
      const bool listed = std::find(points.begin(), points.end(), id) != points.end();
      EXPECT_EQ(listed, components(graph, id.index) > whole) << "node " << id.index;
    }
  }
}

double dearest_from(const Graph& graph, NodeId id, const std::vector<double>& cost) {
  double rest = 0;
  for (const NodeId user : graph.users(id)) rest = std::max(rest, dearest_from(graph, user, cost));
  return cost[id.index] + rest;
}

TEST(Algorithms, CriticalPathAgainstAllPaths) {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    const Graph graph = random_dag(random, 9, 30);
    std::vector<double> cost;
    for (int i = 0; i < 9; ++i) cost.push_back(1 + static_cast<double>(random() % 10));
    double expected = 0;
    for (const NodeId id : graph.nodes()) expected = std::max(expected, dearest_from(graph, id, cost));
    const std::vector<NodeId> path = critical_path(graph, [&](NodeId id) { return cost[id.index]; });
    double sum = 0;
    for (size_t i = 0; i < path.size(); ++i) {
      sum += cost[path[i].index];
      if (i == 0) continue;
      const std::vector<NodeId> users = graph.users(path[i - 1]);
      EXPECT_NE(std::find(users.begin(), users.end(), path[i]), users.end());
    }
    EXPECT_DOUBLE_EQ(sum, expected);
  }
}

TEST(Dot, HasCostsAndSkipsTheDead) {
  Module module;
  module.name = "m";
  module.phase = Phase::Ops;
  Entry entry;
  entry.name = "model";
  const auto leaf = [&](const char* name, Type type) {
    Node made;
    made.name = name;
    made.attributes.set("name", std::string(name));
    made.results = {std::move(type)};
    return Value{entry.graph.add_node(std::move(made), {}), 0};
  };
  const Value x = leaf("x", {DType::F32, {Symbol::B, 3}}), w = leaf("w", {DType::F32, {5, 3}});
  leaf("unused", {DType::F32, {1}});
  const NodeId y = entry.graph.add(OpKind::Linear, {x, w}, {}, "y");
  entry.graph.outputs = {{"output", {y, 0}}};
  entry.graph.erase_unreachable();
  Point point;
  point[Symbol::B] = 100;
  EXPECT_EQ(node_cost(entry.graph, y).flops.at(point), 2 * 100 * 3 * 5);
  EXPECT_EQ(node_cost(entry.graph, y).bytes.at(point), 4 * (100 * 3 + 5 * 3 + 100 * 5));
  const std::string text = dot(module, entry, point);
  EXPECT_NE(text.find("digraph"), std::string::npos);
  EXPECT_NE(text.find("linear\\nf32[B,5]\\n3 kFLOP"), std::string::npos) << text;
  EXPECT_EQ(text.find("unused"), std::string::npos);
}

}  // namespace
}  // namespace tfc::ir
