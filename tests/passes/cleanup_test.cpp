// Cleanups on graphs of a few nodes: what is rewritten, what is left alone, and that a second run finds
// nothing.
#include <gtest/gtest.h>

#include "passes/drop_dead_nodes.h"
#include "passes/fold_constants.h"
#include "passes/fuse_qkv.h"
#include "passes/merge_equal_nodes.h"
#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Graph;
using ir::Module;
using ir::NodeId;
using ir::OpKind;
using ir::Symbol;
using ir::Type;
using ir::Value;

const Type kRows{ir::DType::F64, {Symbol::B, Symbol::T, 6}};

/// A module in phase joint with one entry, `infer`, to be filled.
struct Small {
  Module module;
  Graph& graph;

  Small() : graph(module.entries.emplace_back(ir::Entry{"infer", {}, {}}).graph) {
    module.phase = ir::Phase::Joint;
    module.real = graph.real = ir::DType::F64;
  }

  Value leaf(OpKind op, const std::string& name, Type type, ir::Attributes attributes) {
    ir::Node node;
    node.op = op;
    node.name = name;
    node.results = {std::move(type)};
    node.attributes = std::move(attributes);
    return {graph.add_node(std::move(node), {}), 0};
  }
  Value input(const std::string& name, Type type = kRows) {
    return leaf(OpKind::Input, name, type, {{"name", name}});
  }
  Value param(const std::string& name, Type type) {
    return leaf(OpKind::Param, name, type, {{"name", name}});
  }
  Value add(OpKind op, const std::vector<Value>& operands, ir::Attributes attributes = {}) {
    return {graph.add(op, operands, std::move(attributes)), 0};
  }

  bool run(bool (*pass)(Module&, PassContext&)) {
    PassOptions options;
    ir::Diagnostics diagnostics;
    PassContext context{options, diagnostics};
    const bool changed = pass(module, context);
    EXPECT_FALSE(changed && pass(module, context)) << "a second run found more";
    return changed;
  }
  Value output() const { return graph.outputs[0].value; }
};

TEST(FoldConstants, ScaleByOne) {
  Small m;
  const Value x = m.input("x");
  m.graph.outputs = {{"output", m.add(OpKind::Scale, {x}, {{"factor", 1.0}})}};
  EXPECT_TRUE(m.run(fold_constants));
  EXPECT_EQ(m.output(), x);
}

TEST(FoldConstants, OtherFactorsStay) {
  Small m;
  const Value half = m.add(OpKind::Scale, {m.input("x")}, {{"factor", 0.5}});
  m.graph.outputs = {{"output", m.add(OpKind::Scale, {half}, {{"factor", 0.0}})}};
  EXPECT_FALSE(m.run(fold_constants));
}

TEST(FoldConstants, AddingZerosOnEitherSide) {
  Small m;
  const Value x = m.input("x"), zeros = m.leaf(OpKind::Zeros, "zeros", kRows, {});
  m.graph.outputs = {{"output", m.add(OpKind::Add, {m.add(OpKind::Add, {zeros, x}), zeros})}};
  EXPECT_TRUE(m.run(fold_constants));
  EXPECT_EQ(m.output(), x);
}

TEST(FoldConstants, MaskingTwiceByOneMask) {
  Small m;
  const Type mask_type{ir::DType::U8, {Symbol::B, Symbol::T}};
  const Value x = m.input("x"), mask = m.input("mask", mask_type), other = m.input("other", mask_type);
  const Value once = m.add(OpKind::MaskRows, {x, mask});
  const Value twice = m.add(OpKind::MaskRows, {m.add(OpKind::MaskRows, {once, mask}), other});
  m.graph.outputs = {{"output", twice}};
  EXPECT_TRUE(m.run(fold_constants));
  EXPECT_EQ(m.output(), twice);  // of another mask: it stays
  EXPECT_EQ(m.graph.operand(twice.node, 0), once);
}

TEST(FoldConstants, SplitsOfConcatsAndConcatsOfSplits) {
  Small m;
  const Value x = m.input("x"), y = m.input("y");
  const Value joined = m.add(OpKind::Concat, {x, y});
  const NodeId same = m.graph.add(OpKind::Split, {joined}, {{"widths", std::vector<int64_t>{6, 6}}});
  const NodeId other = m.graph.add(OpKind::Split, {joined}, {{"widths", std::vector<int64_t>{4, 8}}});
  const Value again = m.add(OpKind::Concat, {{other, 0}, {other, 1}});
  const Value swapped = m.add(OpKind::Concat, {{other, 1}, {other, 0}});
  m.graph.outputs = {{"a", {same, 1}}, {"b", again}, {"c", swapped}};
  EXPECT_TRUE(m.run(fold_constants));
  EXPECT_EQ(m.graph.output("a"), y);
  EXPECT_EQ(m.graph.output("b"), joined);
  EXPECT_EQ(m.graph.output("c"), swapped);
}

TEST(MergeEqualNodes, ChainsMerge) {
  Small m;
  const Value x = m.input("x");
  const Value a = m.add(OpKind::Scale, {m.add(OpKind::Scale, {x}, {{"factor", 2.0}})}, {{"factor", 3.0}});
  const Value b = m.add(OpKind::Scale, {m.add(OpKind::Scale, {x}, {{"factor", 2.0}})}, {{"factor", 3.0}});
  const Value sum = m.add(OpKind::Add, {a, b});
  m.graph.outputs = {{"output", sum}};
  EXPECT_TRUE(m.run(merge_equal_nodes));
  EXPECT_EQ(m.graph.operand(sum.node, 0), m.graph.operand(sum.node, 1));
  EXPECT_EQ(m.graph.node_count(), 4u);
}

TEST(MergeEqualNodes, OtherAttributesInputsAndDonationsStay) {
  Small m;
  const Value x = m.input("x"), y = m.input("y");
  const Value a = m.add(OpKind::Scale, {x}, {{"factor", 2.0}}),
              b = m.add(OpKind::Scale, {x}, {{"factor", 3.0}});
  const Value c = m.add(OpKind::Add, {a, b}), d = m.add(OpKind::Add, {b, a}), e = m.add(OpKind::Add, {x, y});
  const Value f = m.add(OpKind::Add, {x, y});
  m.graph.edit(f.node).donates = 0;
  m.graph.outputs = {{"c", c}, {"d", d}, {"e", e}, {"f", f}};
  EXPECT_FALSE(m.run(merge_equal_nodes));
}

TEST(DropDeadNodes, OnlyWhatNoOutputNeeds) {
  Small m;
  const Value x = m.input("x");
  m.add(OpKind::Scale, {m.add(OpKind::Scale, {x}, {{"factor", 2.0}})}, {{"factor", 3.0}});
  m.graph.outputs = {{"output", m.add(OpKind::Add, {x, x})}};
  EXPECT_TRUE(m.run(drop_dead_nodes));
  EXPECT_EQ(m.graph.node_count(), 2u);
}

/// q, k, v of one input, with the parameters' neighbourhood as given.
struct Projections : Small {
  Projections(bool joined, bool same_input) {
    const Value x = input("x"), y = same_input ? x : input("y");
    for (const char* part : {"q", "k", "v"}) {
      const std::string name = std::string("attn.") + part + ".weight";
      module.parameters.push_back({.name = name,
                                   .shape = {6, 6},
                                   .init = {},
                                   .decayed = true,
                                   .frozen = false,
                                   .joins_previous = joined && *part != 'q',
                                   .offset = 0,
                                   .place = {}});
      const Value weight = param(name, {ir::DType::F64, {6, 6}});
      graph.outputs.push_back({part, add(OpKind::Linear, {*part == 'q' ? x : y, weight, Value{}})});
    }
    ir::lay_out_parameters(module);
  }
  size_t products() const {
    size_t count = 0;
    for (NodeId id : graph.nodes()) count += graph.node(id).op == OpKind::Linear;
    return count;
  }
};

TEST(FuseQkv, NeighboursOfOneInput) {
  Projections all(true, true);
  EXPECT_TRUE(all.run(fuse_qkv));
  EXPECT_EQ(all.products(), 1u);

  Projections memory(true, false);  // k and v read another value than q
  EXPECT_TRUE(memory.run(fuse_qkv));
  EXPECT_EQ(memory.products(), 2u);

  Projections apart(false, true);
  EXPECT_FALSE(apart.run(fuse_qkv));
  EXPECT_EQ(apart.products(), 3u);
}

}  // namespace
}  // namespace tfc::passes::testing
