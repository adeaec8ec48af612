#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/algorithms.h"
#include "ir/module.h"

namespace tfc::ir {
namespace {

const Type kRow{DType::F32, {3}};

Value input(Graph& graph, const std::string& name) {
  Node node;
  node.op = OpKind::Input;
  node.name = name;
  node.attributes.set("name", name);
  node.results = {kRow};
  return {graph.add_node(std::move(node), {}), 0};
}

Value add(Graph& graph, Value a, Value b, std::string name = "") {
  return {graph.add(OpKind::Add, {a, b}, {}, std::move(name)), 0};
}

TEST(Graph, NamesAreMadeUnique) {
  Graph graph;
  const Value x = input(graph, "x");
  EXPECT_EQ(graph.node(add(graph, x, x).node).name, "add");
  EXPECT_EQ(graph.node(add(graph, x, x).node).name, "add.2");
  EXPECT_EQ(graph.node(add(graph, x, x).node).name, "add.3");
  EXPECT_EQ(graph.find("add.2").index, 2u);
  EXPECT_FALSE(graph.find("nothing").valid());
}

TEST(Graph, ParallelEdgesKeepTheirSlots) {
  Graph graph;
  const Value x = input(graph, "x"), y = input(graph, "y");
  const Value sum = add(graph, x, x);
  ASSERT_EQ(graph.uses(x).size(), 2u);
  graph.set_operand(sum.node, 1, y);
  EXPECT_EQ(graph.operands(sum.node), (std::vector<Value>{x, y}));
  ASSERT_EQ(graph.uses(x).size(), 1u);
  EXPECT_EQ(graph.uses(x)[0].slot, 0u);
  graph.set_operand(sum.node, 0, y);
  EXPECT_TRUE(graph.uses(x).empty());
  EXPECT_EQ(graph.users(y.node), (std::vector<NodeId>{sum.node}));
}

TEST(Graph, AbsentOperands) {
  Graph graph;
  const Value x = input(graph, "x");
  Node node;
  node.op = OpKind::BlockAttention;
  node.results = {kRow};
  const NodeId id = graph.add_node(std::move(node), {x, {}, x});
  EXPECT_EQ(graph.operand_count(id), 3u);
  EXPECT_FALSE(graph.operand(id, 1).valid());
  EXPECT_EQ(graph.operand(id, 2), x);
  EXPECT_FALSE(graph.operand(id, 7).valid());
}

TEST(Graph, ReferencesToNodesSurviveAdditions) {
  Graph graph;
  const Value x = input(graph, "x");
  const Node& first = graph.node(x.node);
  for (int i = 0; i < 1000; ++i) add(graph, x, x);
  EXPECT_EQ(&first, &graph.node(x.node));
}

TEST(Graph, ReplaceUsesLeavesTheReplacementAlone) {
  Graph graph;
  const Value x = input(graph, "x"), y = input(graph, "y");
  const Value before = add(graph, x, y), user = add(graph, before, y);
  graph.outputs = {{"output", before}};
  const Value wrapped = add(graph, before, x, "wrapped");
  graph.replace_uses(before, wrapped);
  EXPECT_EQ(graph.operand(user.node, 0), wrapped);
  EXPECT_EQ(graph.operand(wrapped.node, 0), before);
  EXPECT_EQ(graph.output("output"), wrapped);
}

TEST(Graph, ReplaceAmongManyUsersIsQuick) {
  Graph graph;  // a mask read by every layer: quadratic search would show as minutes
  const Value x = input(graph, "x"), y = input(graph, "y");
  constexpr uint32_t kUsers = 50000;
  for (uint32_t i = 0; i < kUsers; ++i) add(graph, x, x, "u" + std::to_string(i));
  graph.replace_uses(x, y);
  EXPECT_EQ(graph.uses(y).size(), 2 * kUsers);
  EXPECT_TRUE(graph.uses(x).empty());
}

TEST(Graph, EraseAndCompact) {
  Graph graph;
  const Value x = input(graph, "x"), y = input(graph, "y");
  const Value dead = add(graph, x, y, "dead");
  add(graph, dead, dead, "dead_too");
  const Value kept = add(graph, y, y, "kept");
  graph.outputs = {{"output", kept}};
  EXPECT_EQ(graph.erase_unreachable(), 3u);  // x, dead, dead_too
  EXPECT_FALSE(graph.alive(dead.node));
  EXPECT_FALSE(graph.find("dead").valid());
  EXPECT_EQ(graph.node_count(), 2u);
  EXPECT_EQ(graph.node_capacity(), 5u);
  graph.compact();
  EXPECT_EQ(graph.node_capacity(), 2u);
  EXPECT_EQ(graph.output("output").node.index, 1u);
  EXPECT_EQ(graph.operands(graph.find("kept")),
            (std::vector<Value>{{graph.find("y"), 0}, {graph.find("y"), 0}}));
  EXPECT_EQ(graph.node(add(graph, graph.output("output"), graph.output("output"), "dead").node).name, "dead");
}

TEST(Graph, CompactPutsOperandsFirst) {
  Graph graph;
  const Value x = input(graph, "x"), first = add(graph, x, x, "first"), late = add(graph, x, x, "late");
  graph.set_operand(first.node, 0, late);
  graph.outputs = {{"output", first}};
  graph.compact();
  EXPECT_LT(graph.find("late").index, graph.find("first").index);
  EXPECT_EQ(graph.output("output").node, graph.find("first"));
}

TEST(Graph, CopiesShareNodesUntilTheyAreEdited) {
  Graph graph;
  const Value x = input(graph, "x");
  Node fused;
  fused.op = OpKind::Fused;
  fused.results = {kRow};
  fused.name = "f";
  fused.body = std::make_shared<const Graph>();
  const NodeId id = graph.add_node(std::move(fused), {x});
  Graph copy = graph;
  EXPECT_EQ(&copy.node(id), &graph.node(id));
  copy.edit(id).place.line = 9;
  EXPECT_EQ(copy.node(id).place.line, 9);
  EXPECT_EQ(graph.node(id).place.line, 0);
  EXPECT_EQ(copy.find("f"), id);
  graph.erase(id);
  EXPECT_FALSE(graph.find("f").valid());
  EXPECT_EQ(copy.node(copy.find("f")).name, "f");
  add(copy, x, x);
  EXPECT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(copy.node_count(), 3u);
  EXPECT_EQ(copy.operand(id, 0), x);
}

TEST(Graph, SharedNodesOfAnotherGraph) {
  Graph graph, other;
  const Value x = input(graph, "x"), y = input(other, "y");
  const Value sum = add(graph, x, x, "sum");
  const NodeId shared = other.add_shared(graph, sum.node, {y, y});
  EXPECT_EQ(&other.node(shared), &graph.node(sum.node));
  EXPECT_EQ(other.uses(y).size(), 2u);
  const NodeId again = other.add_shared(graph, sum.node, {y, Value{shared, 0}});  // the name is taken
  EXPECT_EQ(other.node(again).name, "sum.2");
  EXPECT_EQ(other.users(y.node), (std::vector<NodeId>{shared, again}));
  EXPECT_EQ(graph.node(sum.node).name, "sum");
}

TEST(GraphDeath, MisfitsAreFaultsOfTheCompiler) {
  Graph graph;
  const Value x = input(graph, "x");
  EXPECT_EXIT(graph.add(OpKind::Linear, {x, x}), testing::ExitedWithCode(70),
              "fault of the compiler.*w is f32.3.");
  EXPECT_EXIT(graph.add(OpKind::Add, {x}), testing::ExitedWithCode(70), "1 operands do not suit add");
  const Value used = add(graph, x, x);
  add(graph, used, x);
  EXPECT_EXIT(graph.erase(used.node), testing::ExitedWithCode(70), "still has users");
}

TEST(Module, LayOut) {
  Module module;
  const auto parameter = [&](const char* name, std::vector<int64_t> shape, bool joins) {
    Parameter made;
    made.name = name;
    made.shape = std::move(shape);
    made.joins_previous = joins;
    module.parameters.push_back(std::move(made));
  };
  parameter("q", {3, 5}, false);
  parameter("k", {1, 5}, true);
  parameter("b", {7}, false);
  lay_out_parameters(module);
  EXPECT_EQ(module.parameters[0].offset, 0);
  EXPECT_EQ(module.parameters[1].offset, 15);
  EXPECT_EQ(module.parameters[2].offset, 32);
  EXPECT_EQ(module.parameter_count(), 27);
  EXPECT_EQ(module.parameter_block(), 48);
  EXPECT_EQ(split_joined_name("a+b.c+d"), (std::vector<std::string>{"a", "b.c", "d"}));
  EXPECT_EQ(split_joined_name("a"), (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace tfc::ir
