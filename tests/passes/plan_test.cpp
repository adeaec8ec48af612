// Plans: buffers, slots, storage that values share, sizes. Every plan of the pipeline also passes the
// verifier.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "passes/models.h"
#include "passes/plan/schedule.h"
#include "passes/plan_memory.h"

namespace tfc::passes::testing {
namespace {

using ir::Arg;
using ir::Entry;
using ir::Module;
using ir::Phase;
using ir::Plan;
using ir::Record;
using ir::Space;
using ir::Symbol;

std::vector<Model> models() {
  return {{},
          llama_like(),
          {.kind = "encoder", .head = "classifier", .placement = "post", .types = 2, .embedding_norm = true},
          {.kind = "encoder-decoder", .placement = "sandwich", .mask = true}};
}

/// No two buffers that are touched in one span of records lie at the same bytes, at any of several sizes.
void expect_disjoint(const Plan& plan, const ir::Point& point) {
  struct Extent {
    int64_t begin, end;
    const ir::Buffer* buffer;
  };
  std::vector<int64_t> offsets = {0};
  for (const ir::Dim& slot : plan.slots) offsets.push_back(offsets.back() + slot.at(point));
  EXPECT_EQ(offsets.back(), plan.workspace_bytes().at(point));
  std::vector<Extent> extents;
  for (const ir::Buffer& buffer : plan.buffers) {
    ASSERT_GE(buffer.slot, 0) << buffer.name;
    const int64_t begin = offsets[static_cast<size_t>(buffer.slot)];
    EXPECT_EQ(begin % 64, 0);
    EXPECT_LE(begin + buffer.bytes.at(point), offsets.back()) << buffer.name;
    extents.push_back({begin, begin + buffer.bytes.at(point), &buffer});
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Extent &a = extents[i], &b = extents[j];
      const bool share_time = a.buffer->first <= b.buffer->last && b.buffer->first <= a.buffer->last;
      const bool share_bytes = a.begin < b.end && b.begin < a.end;
      EXPECT_FALSE(share_time && share_bytes) << a.buffer->name << " and " << b.buffer->name;
    }
  }
}

TEST(Plan, LivingBuffersDoNotOverlap) {
  for (const Model& model : models()) {
    const Module module = compiled(model, Phase::Planned);
    for (const Entry& entry : module.entries) {
      SCOPED_TRACE(model.kind + " " + entry.name);
      ASSERT_TRUE(entry.plan.has_value());
      for (const ir::Point& point :
           {small_point(), small_point(1, 1, 1, 1), small_point(3, 1, 90, 2), small_point(1, 200, 1, 300)}) {
        expect_disjoint(*entry.plan, point);
        EXPECT_LE(workspace_lower_bound(*entry.plan, point), entry.plan->workspace_bytes().at(point));
      }
    }
  }
}

/// Two small buffers, then one that needs the place of both and more where T is large.
TEST(Plan, ALargeBufferLiesOverSlotsThatAreFree) {
  using ir::Dim;
  using ir::Symbol;
  Module module;
  module.entries.push_back({"infer", {}, Plan()});
  Plan& plan = *module.entries[0].plan;
  plan.records.resize(4);
  const Dim small = Dim(64) * Dim(Symbol::B), large = Dim(64) * Dim(Symbol::T);
  plan.buffers = {{"a", small, 0, 1}, {"b", small, 0, 1}, {"large", large, 2, 2}, {"c", small, 1, 3}};
  PassOptions options;
  options.point = small_point(5, 12);
  ir::Diagnostics diagnostics;
  PassContext context{options, diagnostics};
  EXPECT_TRUE(plan_memory(module, context));
  EXPECT_EQ(plan.workspace_bytes().at(options.point), 64 * (5 + 12));
  for (const ir::Point& point :
       {small_point(5, 12), small_point(1, 1), small_point(7, 2), small_point(2, 90)}) {
    expect_disjoint(plan, point);
    EXPECT_EQ(plan.workspace_bytes().at(point), workspace_lower_bound(plan, point));
  }
}

TEST(Plan, ReuseCanBeTurnedOff) {
  const Module sharing = compiled({}, Phase::Planned);
  const Module apart = compiled({}, Phase::Planned, {.disabled = {"reuse-memory"}});
  const Plan &a = *sharing.entry("train")->plan, &b = *apart.entry("train")->plan;
  EXPECT_LT(a.slots.size(), a.buffers.size());
  EXPECT_EQ(b.slots.size(), b.buffers.size());
  EXPECT_LT(a.workspace_bytes().at(small_point()), b.workspace_bytes().at(small_point()));
  expect_disjoint(b, small_point());
}

const Record& record_of(const Plan& plan, const std::string& node) {
  for (const Record& record : plan.records) {
    if (record.node == node) return record;
  }
  ADD_FAILURE() << "no record of " << node;
  return plan.records.front();
}

bool touches(const Record& record, Space space, int index, const ir::Dim& offset) {
  return std::any_of(record.args.begin(), record.args.end(), [&](const Arg& arg) {
    return arg.kind == Arg::Kind::Pointer && arg.space == space && arg.index == index && arg.value == offset;
  });
}

int buffer_named(const Plan& plan, const std::string& name) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

TEST(Plan, SplitsAreViewsAndConcatsAreMadeInPlace) {
  const Module module = compiled({.layers = 1}, Phase::Planned);
  const Plan& plan = *module.entry("train")->plan;
  const int qkv = buffer_named(plan, "layers.0.attn.q+k+v");
  ASSERT_GE(qkv, 0);
  const Record& attention = record_of(plan, "layers.0.attn");
  for (int64_t column : {0, 6, 12})
    EXPECT_TRUE(touches(attention, Space::Workspace, qkv, column * 8)) << column;
  EXPECT_EQ(buffer_named(plan, "layers.0.attn.q+k+v.split"), -1);

  const int gradients = buffer_named(plan, "layers.0.attn.q+k+v.split.dx");
  ASSERT_GE(gradients, 0);
  EXPECT_TRUE(std::any_of(plan.records.begin(), plan.records.end(), [&](const Record& record) {
    return record.node == "layers.0.attn.grad" && touches(record, Space::Workspace, gradients, 12 * 8);
  }));
  for (const Record& record : plan.records) EXPECT_NE(record.node, "layers.0.attn.q+k+v.split.dx");
}

TEST(Plan, MaskedLogitsAreMadeInTheCallersMemory) {
  const Module module = compiled({.mask = true}, Phase::Planned);
  const Plan& infer = *module.entry("infer")->plan;
  const int output = static_cast<int>(infer.externals.size()) - 1;
  EXPECT_TRUE(touches(record_of(infer, "head.logits"), Space::External, output, 0));
  EXPECT_EQ(buffer_named(infer, "head.logits"), -1);
}

TEST(Plan, GradientsAndCachesAreUpdatedInTheirOwnMemory) {
  const Module module = compiled({}, Phase::Planned);
  const Plan& train = *module.entry("train")->plan;
  std::set<int64_t> offsets;
  for (const Record& record : train.records) {
    for (const Arg& arg : record.args) {
      if (arg.kind == Arg::Kind::Pointer && arg.space == Space::Grads) offsets.insert(*arg.value.constant());
    }
  }
  for (const ir::Parameter& parameter : module.parameters) {
    if (!parameter.joins_previous) {
      EXPECT_TRUE(offsets.contains(parameter.offset * 8)) << parameter.name;
    }
  }
  for (const ir::External& external : train.externals) EXPECT_FALSE(external.name.starts_with("grads:"));

  const Plan& decode = *module.entry("decode")->plan;
  const Record& append = record_of(decode, "layers.1.attn.v.append");
  EXPECT_TRUE(std::any_of(append.args.begin(), append.args.end(), [](const Arg& arg) {
    return arg.kind == Arg::Kind::Pointer && arg.space == Space::Cache;
  }));
}

TEST(Plan, OutputsAreMadeInTheCallersMemory) {
  const Module module = compiled({.layers = 1}, Phase::Planned);
  const Plan& infer = *module.entry("infer")->plan;
  ASSERT_EQ(infer.externals.size(), 2u);
  EXPECT_EQ(infer.externals[0].name, "tokens");
  EXPECT_EQ(infer.externals[1].name, "output");
  EXPECT_TRUE(touches(infer.records.back(), Space::External, 1, 0));
  EXPECT_EQ(infer.records.back().node, "head.logits");
}

/// An input that is an output, a view that is an output, one value under two names: copies.
TEST(Plan, CopiesWhatNoKernelMakesInPlace) {
  Module module = compiled({.layers = 1}, Phase::Fused);
  Entry* infer = module.entry("infer");
  const ir::NodeId split = infer->graph.find("layers.0.attn.q+k+v.split");
  ASSERT_TRUE(split.valid());
  infer->graph.outputs.push_back({"k", {split, 1}});
  infer->graph.outputs.push_back({"again", infer->graph.output("output")});
  run_to(module, Phase::Planned);
  const Plan& plan = *infer->plan;
  int copies = 0;
  for (const Record& record : plan.records) copies += record.node.ends_with(".copy");
  EXPECT_EQ(copies, 2);
}

TEST(Plan, ReadersOfADonatedValueRunFirst) {
  ir::Graph graph;
  graph.real = ir::DType::F64;
  const ir::Type type{ir::DType::F64, {4}};
  const auto leaf = [&](ir::OpKind op, const std::string& name) {
    ir::Node node;
    node.op = op;
    node.name = name;
    node.results = {type};
    node.attributes.set("name", name);
    return ir::Value{graph.add_node(std::move(node), {}), 0};
  };
  const ir::Value state = leaf(ir::OpKind::State, "state"), x = leaf(ir::OpKind::Input, "x");
  const ir::NodeId update = graph.add(ir::OpKind::Add, {state, x}, {}, "update");
  graph.edit(update).donates = 0;
  const ir::NodeId reader = graph.add(ir::OpKind::Multiply, {state, x}, {}, "reader");
  graph.outputs = {{"a", {update, 0}}, {"b", {reader, 0}}};
  EXPECT_EQ(schedule(graph, small_point()), (std::vector<ir::NodeId>{reader, update}));
}

TEST(Plan, GradientsDoNotPileUp) {
  const Module module = compiled({.layers = 8}, Phase::Planned);
  const Plan& plan = *module.entry("train")->plan;
  int64_t temporaries = 0;
  for (const ir::Buffer& buffer : plan.buffers) {
    if (buffer.name.ends_with(".db") || buffer.name.ends_with(".dw")) {
      temporaries = std::max<int64_t>(temporaries, buffer.last - buffer.first);
    }
  }
  EXPECT_LT(temporaries, 8);
}

}  // namespace
}  // namespace tfc::passes::testing
