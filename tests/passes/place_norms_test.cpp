// Where norms stand: known numbers, the rule of `auto`, and what is left alone.
#include "passes/place_norms.h"

#include <gtest/gtest.h>

#include "passes/models.h"
#include "passes/norm_lists.h"

namespace tfc::passes::testing {
namespace {

using ir::Dim;
using ir::DType;
using ir::Graph;
using ir::Module;
using ir::Node;
using ir::OpKind;
using ir::Phase;
using ir::Symbol;
using ir::Type;
using ir::Value;

const Type kHidden{DType::F64, {Symbol::B, Symbol::T, 4}};

Value add_block(Graph& graph, OpKind op, const std::string& name, const std::vector<Value>& operands,
                ir::Attributes attributes) {
  Node node;
  node.op = op;
  node.name = name;
  node.results = {kHidden};
  node.attributes = std::move(attributes);
  return {graph.add_node(std::move(node), operands), 0};
}

/// A written block: one sub-layer that is the linear map W, with the norms of a placement's first sub-layer.
Module linear_block(std::string_view placement, bool final_norm) {
  Module module;
  module.name = "token";
  module.real = DType::F64;
  module.facts = {{"kind", std::string("encoder")}, {"d_model", int64_t{4}}, {"layers", int64_t{1}},
                  {"head", std::string("none")},    {"vocab", int64_t{0}},   {"init", std::string("normal")}};
  Graph graph;
  graph.real = DType::F64;
  std::map<std::string, Value> named;
  named["x"] = add_block(graph, OpKind::Input, "x", {}, {{"name", std::string("x")}});
  const auto norm = [&](const std::string& name, Value x) {
    return add_block(graph, OpKind::BlockNorm, name, {x},
                     {{"prefix", name},
                      {"type", std::string("layernorm")},
                      {"eps", 1e-5},
                      {"bias", true},
                      {"final", std::string()}});
  };
  Value last;
  for (const ListNode& item :
       norm_list(placement, false).first(3)) {  // attention, norm and sum of the first sub-layer
    const std::string in(item.in);
    if (item.op == "norm") {
      last = norm(std::string(item.id), named.at(in));
    } else if (item.op == "attention") {
      last = add_block(graph, OpKind::BlockLinear, "attn", {named.at(in)},
                       {{"prefix", std::string("attn")}, {"out", int64_t{4}}, {"bias", false}});
    } else {
      last = add_block(graph, OpKind::BlockResidual, std::string(item.id), {named.at("x"), named.at("attn")},
                       {{"scale", 1.0}});
    }
    named[std::string(item.id)] = last;
  }
  if (final_norm) last = norm("final_norm", last);
  graph.outputs = {{"output", last}};
  module.entries.push_back({"model", std::move(graph), {}});
  return module;
}

std::vector<double> through_token(std::string_view placement, bool final_norm) {
  Module module = linear_block(placement, final_norm);
  run_to(module, Phase::Joint);
  ir::Interpreter interpreter(module, small_point(1, 1));
  // y = x W with the rows of W as given; a linear's weight is [out, in].
  const double w[4][4] = {{.1, .2, -.1, .3}, {0, -.1, .2, .1}, {.3, 0, -.2, .1}, {-.1, .1, .1, -.2}};
  std::vector<double> weight;
  for (int out = 0; out < 4; ++out) {
    for (int in = 0; in < 4; ++in) weight.push_back(w[in][out]);
  }
  interpreter.write(ir::Space::Params, "attn.weight", weight);
  for (const ir::Parameter& parameter : module.parameters) {
    if (parameter.init.kind == ir::Init::Kind::Constant) {
      interpreter.write(ir::Space::Params, parameter.name, std::vector<double>(4, parameter.init.value));
    }
  }
  interpreter.inputs["x"] = ir::Tensor(DType::F64, {1, 1, 4}, {1.5, -0.3, 0.8, 2.1});
  interpreter.run(module.entry("infer")->graph);
  return interpreter.output("output").data;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 5e-7) << i;
}

TEST(PlaceNorms, KnownToken) {
  expect_near(through_token("post", false), {0.635721, -1.213650, -0.699936, 1.277864});
  expect_near(through_token("pre", false), {1.357172, 0.075273, 0.620765, 1.845151});
  expect_near(through_token("pre", true), {0.564355, -1.326603, -0.521935, 1.284183});
}

/// Ops of the model's nodes in phase blocks after the pass, in order.
std::string placed(const Model& model, ir::Diagnostics& diagnostics) {
  Module module = blocks(model);
  PassOptions options;
  PassContext context{options, diagnostics};
  EXPECT_TRUE(place_norms(module, context));
  module.entries[0].graph.compact();
  std::string text;
  for (ir::NodeId id : module.entries[0].graph.nodes()) {
    const Node& node = module.entries[0].graph.node(id);
    if (node.name.find("layers.0.") != std::string::npos ||
        node.name.find("final_norm") != std::string::npos) {
      text += node.name.substr(node.name.rfind('.') + 1) + " ";
    }
  }
  return text;
}

TEST(PlaceNorms, ListsOfDecoderLayers) {
  ir::Diagnostics diagnostics;
  EXPECT_EQ(placed({.placement = "pre", .layers = 1}, diagnostics),
            "norm1 attn sum1 norm2 ffn out final_norm ");
  EXPECT_EQ(placed({.placement = "post", .layers = 1}, diagnostics), "attn sum1 norm1 ffn sum2 norm2 ");
  EXPECT_EQ(placed({.placement = "sandwich", .layers = 1}, diagnostics),
            "norm1 attn norm1_out sum1 norm2 ffn norm2_out out final_norm ");
  EXPECT_EQ(placed({.kind = "encoder-decoder", .placement = "post", .layers = 1, .memory_input = true},
                   diagnostics),
            "attn sum1 norm1 cross sum2 norm2 ffn sum3 norm3 ");
}

TEST(PlaceNorms, AutoIsPostUpToSixLayersAndSaysWhy) {
  ir::Diagnostics shallow, deep;
  shallow.remarks_wanted = deep.remarks_wanted = true;
  EXPECT_EQ(placed({.placement = "auto", .layers = 6}, shallow), "attn sum1 norm1 ffn sum2 norm2 ");
  EXPECT_EQ(placed({.placement = "auto", .layers = 7}, deep), "norm1 attn sum1 norm2 ffn out final_norm ");
  EXPECT_NE(shallow.text().find(
                "'layers.0': auto placement is post, because the stack has 6 layers, not more than 6"),
            std::string::npos)
      << shallow.text();
  EXPECT_NE(shallow.text().find("'final_norm': dropped, because the placement became post"),
            std::string::npos);
  EXPECT_NE(
      deep.text().find("'layers.0': auto placement is pre, because the stack has 7 layers, more than 6"),
      std::string::npos)
      << deep.text();
  EXPECT_NE(deep.text().find("'final_norm': kept, because the placement became pre"), std::string::npos);
}

TEST(PlaceNorms, LeavesWrittenBlocksAlone) {
  Module module = linear_block("pre", true);
  const std::string before = ir::print(module);
  PassOptions options;
  ir::Diagnostics diagnostics;
  PassContext context{options, diagnostics};
  EXPECT_FALSE(place_norms(module, context));
  EXPECT_EQ(ir::print(module), before);
}

}  // namespace
}  // namespace tfc::passes::testing
