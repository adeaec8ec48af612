// Values that the interpreter's rules must give: known numbers, what is never read, and the interpreter
// itself.
#include "ir/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/alibi.h"
#include "ir/op_cases.h"

namespace tfc::ir {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Tensor> run(const OpCase& op_case, const Module* module = nullptr) {
  const CaseGraph made = build(op_case);
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : op_case.operands) pointers.push_back(is_absent(operand) ? nullptr : &operand);
  std::vector<Tensor> results;
  for (const Type& type : made.graph.node(made.node).results)
    results.emplace_back(type.dtype, shape_at(type, Point{}));
  evaluate(op_case.op, EvalContext{pointers, results, op_case.attributes, module});
  return results;
}

Tensor f64(std::vector<int64_t> shape, std::vector<double> data) {
  return {DType::F64, std::move(shape), std::move(data)};
}
Tensor i32(std::vector<int64_t> shape, std::vector<double> data) {
  return {DType::I32, std::move(shape), std::move(data)};
}
Tensor u8(std::vector<int64_t> shape, std::vector<double> data) {
  return {DType::U8, std::move(shape), std::move(data)};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance = 1e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

double activation(const char* kind, double x) {
  return run({OpKind::Activation, {f64({1}, {x})}, {{"kind", std::string(kind)}}})[0][0];
}

TEST(Interpreter, Activations) {
  EXPECT_NEAR(activation("gelu", 1), 0.8413447, 1e-7);
  EXPECT_NEAR(activation("gelu_tanh", 1), 0.8411920, 1e-7);
  EXPECT_NEAR(activation("silu", 1), 0.7310586, 1e-7);
  EXPECT_EQ(activation("relu", -2), 0);
  EXPECT_EQ(activation("relu", 3), 3);
  for (const char* kind : {"relu", "gelu", "gelu_tanh", "silu"}) {
    EXPECT_TRUE(std::isnan(activation(kind, kNan))) << kind;
    EXPECT_NEAR(activation(kind, -800), 0, 1e-9) << kind;
    EXPECT_NEAR(activation(kind, 800), 800, 1e-9) << kind;
  }
}

TEST(Interpreter, LayerNormWithoutCancellation) {
  const double large = 1e8;
  const auto results =
      run({OpKind::LayerNorm,
           {f64({1, 4}, {large + 1, large - 1, large + 3, large - 3}), f64({4}, {1, 1, 1, 1}), absent()},
           {{"eps", 0.0}}});
  const double deviation = std::sqrt(5.0);
  expect_near(results[0].data, {1 / deviation, -1 / deviation, 3 / deviation, -3 / deviation}, 1e-9);
  EXPECT_EQ(results[1][0], large);
}

// The token (1.5, -0.3, 0.8, 2.1) through a fixed map, with the norm after (post) and before it (pre).
TEST(Interpreter, NormPlacementsOfOneToken) {
  const std::vector<double> x = {1.5, -0.3, 0.8, 2.1};
  const Tensor w = f64({4, 4}, {.1, 0, .3, -.1, .2, -.1, 0, .1, -.1, .2, -.2, .1, .3, .1, .1, -.2});  // W^T
  const Tensor ones = f64({4}, {1, 1, 1, 1});
  const auto norm = [&](const Tensor& t) {
    return run({OpKind::LayerNorm, {t, ones, absent()}, {{"eps", 1e-5}}})[0];
  };
  const auto map = [&](const Tensor& t) { return run({OpKind::Linear, {t, w}})[0]; };
  const auto sum = [&](const Tensor& a, const Tensor& b) {
    return run({OpKind::Residual, {a, b}, {{"scale", 1.0}}})[0];
  };
  const Tensor token = f64({1, 4}, x);
  expect_near(norm(sum(token, map(token))).data, {0.635721, -1.213650, -0.699936, 1.277864});
  const Tensor pre = sum(token, map(norm(token)));
  expect_near(pre.data, {1.357172, 0.075273, 0.620765, 1.845151});
  expect_near(norm(pre).data, {0.564355, -1.326603, -0.521935, 1.284183});
}

Attributes heads(bool causal) {
  return {{"heads", int64_t{1}},
          {"kv_heads", int64_t{1}},
          {"head_dim", int64_t{1}},
          {"scale", 1.0},
          {"causal", causal}};
}

TEST(Interpreter, AttentionReadsNothingInvisible) {
  // The second key is masked and NaN; the third is past the causal end of the first query.
  const auto results = run({OpKind::Attention,
                            {f64({1, 2, 1}, {1, 1}), f64({1, 3, 1}, {0, kNan, 0}),
                             f64({1, 3, 1}, {2, kNan, 4}), u8({1, 3}, {1, 0, 1})},
                            heads(true)});
  expect_near(results[0].data, {2, 3});
  expect_near(results[1].data, {0, std::log(2)});
}

TEST(Interpreter, AttentionWithoutVisibleKey) {
  const auto results = run({OpKind::Attention,
                            {f64({1, 1, 1}, {kNan}), f64({1, 2, 1}, {kNan, kNan}),
                             f64({1, 2, 1}, {kNan, kNan}), u8({1, 2}, {0, 0})},
                            heads(false)});
  EXPECT_EQ(results[0][0], 0);
  EXPECT_EQ(results[1][0], -kInfinity);
  const auto grads = run({OpKind::AttentionGrad,
                          {f64({1, 1, 1}, {1}), f64({1, 1, 1}, {kNan}), f64({1, 2, 1}, {kNan, kNan}),
                           f64({1, 2, 1}, {kNan, kNan}), results[0], results[1], u8({1, 2}, {0, 0})},
                          heads(false)});
  for (const Tensor& grad : grads)
    for (const double value : grad.data) EXPECT_EQ(value, 0);
}

TEST(Interpreter, AttentionKeepsNanThatIsRead) {
  const auto results = run({OpKind::Attention,
                            {f64({1, 1, 1}, {1}), f64({1, 2, 1}, {0, kNan}), f64({1, 2, 1}, {2, 4})},
                            heads(false)});
  EXPECT_TRUE(std::isnan(results[0][0]));
}

TEST(Interpreter, AttentionOverACache) {
  // Four slots; two tokens were there before, one is new: it sees three. Of the cross kind it sees what is
  // filled.
  const Tensor q = f64({1, 1, 1}, {0}), k = f64({1, 4, 1}, {0, 0, 0, kNan}),
               v = f64({1, 4, 1}, {1, 2, 6, kNan});
  EXPECT_NEAR(run({OpKind::Attention, {q, k, v, absent(), i32({1}, {2})}, heads(true)})[0][0], 3, 1e-12);
  EXPECT_NEAR(run({OpKind::Attention, {q, k, v, absent(), i32({1}, {2})}, heads(false)})[0][0], 1.5, 1e-12);
}

TEST(Interpreter, CacheAppend) {
  const auto results = run({OpKind::CacheAppend,
                            {f64({2, 3, 1}, {1, 2, 3, 4, 5, 6}), f64({2, 2, 1}, {10, 20, 30, kNan}),
                             i32({2}, {1, 0}), u8({2, 2}, {1, 1, 1, 0})}});
  EXPECT_EQ(results[0].data, (std::vector<double>{1, 10, 20, 30, 5, 6}));
  const auto ring = run({OpKind::CacheAppend,
                         {i32({1, 3}, {1, 2, 3}), i32({1, 5}, {10, 20, 30, 40, 50}), i32({1}, {4}),
                          u8({1, 5}, {1, 1, 1, 1, 0})},
                         {{"ring", true}}});
  EXPECT_EQ(ring[0].data, (std::vector<double>{30, 40, 20}));
}

/// Means of equal scores say which keys a query sees.
TEST(Interpreter, WindowsPrefixesAndDocuments) {
  const Tensor q = f64({1, 5, 1}, {0, 0, 0, 0, 0}), v = f64({1, 5, 1}, {1, 2, 4, 8, 16});
  const auto means = [&](std::vector<Tensor> more, Attributes attributes) {
    std::vector<Tensor> operands = {q, q, v, absent(), absent()};
    operands.insert(operands.end(), more.begin(), more.end());
    return run({OpKind::Attention, operands, std::move(attributes)})[0].data;
  };
  const auto near = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
  };
  const auto window = [](Attributes attributes, int64_t before, int64_t after) {
    attributes.set("window", before);
    attributes.set("after", after);
    return attributes;
  };
  near(means({}, window(heads(true), 2, 0)), {1, 1.5, 3, 6, 12});
  near(means({}, window(heads(false), 2, 0)), {1, 1.5, 3, 6, 12});
  near(means({}, window(heads(false), 1, 1)), {1.5, 3, 6, 12, 16});
  near(means({i32({1}, {3})}, heads(true)), {7 / 3., 7 / 3., 7 / 3., 15 / 4., 31 / 5.});
  near(means({i32({1}, {3})}, window(heads(true), 2, 0)), {1.5, 7 / 3., 3, 6, 12});
  const Tensor documents = i32({1, 5}, {4, 4, 0, 0, 4});
  near(means({absent(), documents, documents}, heads(true)), {1, 1.5, 4, 6, 19 / 3.});
}

TEST(Interpreter, DistanceLowersScores) {
  const Tensor q = f64({1, 2, 1}, {0, 0}), v = f64({1, 2, 1}, {0, 1});
  Attributes attributes = heads(true);
  attributes.set("alibi", true);
  const double slope = std::exp2(-8);  // of one head
  const Tensor positions = i32({1, 2}, {3, 13});
  EXPECT_NEAR(run({OpKind::Attention, {q, q, v}, attributes})[0][1], 1 / (1 + std::exp(-slope)), 1e-12);
  EXPECT_NEAR(run({OpKind::Attention,
                   {q, q, v, absent(), absent(), absent(), absent(), absent(), positions, positions},
                   attributes})[0][1],
              1 / (1 + std::exp(-10 * slope)), 1e-12);
}

TEST(Interpreter, SlopesAreThoseOfThePaper) {
  const auto near = [](int64_t heads, const std::vector<double>& exponents) {
    const std::vector<double> slopes = alibi_slopes(heads);
    ASSERT_EQ(slopes.size(), exponents.size());
    for (size_t i = 0; i < exponents.size(); ++i) EXPECT_NEAR(slopes[i], std::exp2(-exponents[i]), 1e-15);
  };
  near(1, {8});
  near(8, {1, 2, 3, 4, 5, 6, 7, 8});
  near(6, {2, 4, 6, 8, 1, 3});
  near(12, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5});
}

TEST(Interpreter, MaskedIdsAndTargetsAreNeverRead) {
  const auto rows = run({OpKind::Embedding,
                         {i32({1, 3}, {1, 1e9, -7}), f64({2, 1}, {kNan, 5}), u8({1, 3}, {1, 0, 0})},
                         {{"scale", 2.0}}});
  EXPECT_EQ(rows[0].data, (std::vector<double>{10, 0, 0}));
  const Attributes attributes{{"ignore_index", int64_t{-100}}, {"smoothing", 0.0}};
  const auto loss = run({OpKind::LinearLoss,
                         {f64({1, 3, 1}, {0, kNan, kNan}), f64({2, 1}, {1, 1}), absent(),
                          i32({1, 3}, {1, 1e9, -100}), u8({1, 3}, {1, 0, 1})},
                         attributes});
  EXPECT_NEAR(loss[0][0], std::log(2), 1e-12);
  EXPECT_EQ(loss[1][0], 1);
}

TEST(Interpreter, NoTargetCounts) {
  const OpCase none{
      OpKind::LinearLossGrad,
      {f64({2, 1}, {1, 2}), f64({2, 1}, {1, 1}), absent(), i32({2}, {-100, -100}), absent(), absent(), f64({}, {1})},
      {{"ignore_index", int64_t{-100}}, {"smoothing", 0.0}}};
  for (const Tensor& result : run(none))
    for (const double value : result.data) EXPECT_EQ(value, 0);
}

TEST(Interpreter, LabelSmoothingAsInPyTorch) {
  // logits 0, log 3: p = 1/4, 3/4; target 1
  const double e = 0.2;
  const auto loss = run({OpKind::LinearLoss,
                         {f64({1, 1}, {std::log(3)}), f64({2, 1}, {0, 1}), absent(), i32({1}, {1})},
                         {{"ignore_index", int64_t{-100}}, {"smoothing", e}}});
  EXPECT_NEAR(loss[0][0], -(1 - e) * std::log(0.75) - e / 2 * (std::log(0.25) + std::log(0.75)), 1e-12);
}

TEST(Interpreter, LogProbabilities) {
  const auto log_p =
      run({OpKind::LinearLogprob,
           {f64({2, 1}, {std::log(3), kNan}), f64({2, 1}, {0, 1}), absent(), i32({2}, {1, -100})},
           {{"ignore_index", int64_t{-100}}}});
  expect_near(log_p[0].data, {std::log(0.75), 0}, 1e-12);
}

TEST(Interpreter, Positions) {
  const auto rows = run({OpKind::Sinusoid, {i32({2}, {0, 3})}, {{"width", int64_t{3}}, {"tokens", Dim(2)}}});
  EXPECT_EQ(rows[0].shape, (std::vector<int64_t>{2, 2, 3}));
  const double slow = std::pow(10000.0, -2.0 / 3);
  expect_near(rows[0].data,
              {0, 1, 0, std::sin(1), std::cos(1), std::sin(slow), std::sin(3), std::cos(3),
               std::sin(3 * slow), std::sin(4), std::cos(4), std::sin(4 * slow)},
              1e-12);
  const auto learned =
      run({OpKind::PositionRows, {f64({3, 1}, {7, 8, 9}), i32({2}, {0, 2})}, {{"tokens", Dim(2)}}});
  EXPECT_EQ(learned[0].data, (std::vector<double>{7, 8, 9, 9}));  // past the table: its last row
}

TEST(Interpreter, RopeTurnsPairs) {
  const double half_turn = std::acos(-1) / 2;
  const Tensor table = f64({1, 4}, {std::cos(half_turn), 1, std::sin(half_turn), 0});
  const auto rope = [&](const char* style, bool inverse) {
    return run({OpKind::Rope,
                {f64({1, 1, 4}, {1, 2, 3, 4}), table},
                {{"heads", int64_t{1}},
                 {"head_dim", int64_t{4}},
                 {"style", std::string(style)},
                 {"inverse", inverse}}})[0]
        .data;
  };
  expect_near(rope("half", false), {-3, 2, 1, 4}, 1e-12);
  expect_near(rope("half", true), {3, 2, -1, 4}, 1e-12);
  expect_near(rope("interleaved", false), {-2, 1, 3, 4}, 1e-12);
}

TEST(Interpreter, Pools) {
  const Tensor x = f64({2, 3, 1}, {kNan, 2, 4, kNan, kNan, kNan}), mask = u8({2, 3}, {0, 1, 1, 0, 0, 0});
  const auto pool = [&](const char* kind) {
    return run({OpKind::Pool, {x, mask}, {{"kind", std::string(kind)}}})[0].data;
  };
  EXPECT_EQ(pool("first"), (std::vector<double>{2, 0}));
  EXPECT_EQ(pool("last"), (std::vector<double>{4, 0}));
  EXPECT_EQ(pool("mean"), (std::vector<double>{3, 0}));
}

TEST(Interpreter, AnyRealTokenMakesARowReal) {
  EXPECT_EQ(run({OpKind::AnyReal, {u8({3, 2}, {0, 1, 0, 0, 1, 0})}})[0].data, (std::vector<double>{1, 0, 1}));
}

TEST(Interpreter, MaskRowsSelects) {
  EXPECT_EQ(run({OpKind::MaskRows, {f64({2, 1}, {kNan, 3}), u8({2}, {0, 1})}})[0].data,
            (std::vector<double>{0, 3}));
}

// ---- update ----

Module two_parameters() {
  Module module;
  module.real = DType::F64;
  for (const char* name : {"a", "b"}) {
    Parameter parameter;
    parameter.name = name;
    parameter.shape = {3};
    module.parameters.push_back(parameter);
  }
  lay_out_parameters(module);
  return module;
}

TEST(Interpreter, Clipping) {
  const auto clip = [](double squares, double count, double limit) {
    return run({OpKind::ClipScale, {f64({}, {squares}), f64({}, {count}), f64({}, {limit})}});
  };
  EXPECT_EQ(run({OpKind::SumSquares, {f64({3}, {1, 2, -2})}})[0][0], 9);
  EXPECT_EQ(clip(36, 2, 0)[0][0], 0.5);  // off
  EXPECT_EQ(clip(36, 2, 0)[1][0], 3);
  EXPECT_EQ(clip(36, 2, 5)[0][0], 0.5);  // below the limit
  EXPECT_NEAR(clip(36, 2, 1.5)[0][0], 0.25, 1e-6);
}

TEST(Interpreter, AdamWByHand) {
  const Module module = two_parameters();
  const int64_t N = module.parameter_block();
  const auto all = [&](double value) { return f64({N}, std::vector<double>(static_cast<size_t>(N), value)); };
  const double lr = 0.1, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, decay = 0.2, g = 0.5 * 4;
  const auto results =
      run({OpKind::AdamW,
           {all(1), all(4), all(0.3), all(0.2), f64({}, {0.5}),
            f64({8}, {lr, beta1, beta2, eps, decay, 2, 0, 0}), f64({2}, {1, 0.5}), f64({2}, {1, 0})}},
          &module);
  const double m = beta1 * 0.3 + (1 - beta1) * g, v = beta2 * 0.2 + (1 - beta2) * g * g;
  const double direction = m / (1 - beta1 * beta1) / (std::sqrt(v / (1 - beta2 * beta2)) + eps);
  EXPECT_NEAR(results[0][0], 1 - lr * decay - lr * direction, 1e-12);
  EXPECT_NEAR(results[0][module.parameters[1].offset], 1 - 0.5 * lr * direction, 1e-12);
  EXPECT_NEAR(results[1][0], m, 1e-12);
  EXPECT_NEAR(results[2][0], v, 1e-12);
  EXPECT_EQ(results[0][N - 1], 1);  // padding stays
  EXPECT_EQ(results[1][N - 1], 0.3);
  for (const double zero : results[3].data) EXPECT_EQ(zero, 0);
}

// ---- whole graphs ----

TEST(Interpreter, RunsFusedBodiesAndCommitsState) {
  Module module = two_parameters();
  Graph graph;
  graph.real = DType::F64;
  const Type row{DType::F64, {3}};
  const auto leaf = [&](Graph& to, OpKind op, const std::string& name, Attributes attributes) {
    Node node;
    node.op = op;
    node.name = name;
    node.attributes = std::move(attributes);
    node.results = {row};
    return Value{to.add_node(std::move(node), {}), 0};
  };
  const Value a = leaf(graph, OpKind::Param, "a", {{"name", std::string("a")}});
  const Value before =
      leaf(graph, OpKind::State, "ga", {{"space", std::string("grads")}, {"name", std::string("a")}});
  Node fused;
  fused.op = OpKind::Fused;
  fused.name = "f";
  fused.results = {row, row};
  const auto body = std::make_shared<Graph>();
  body->real = DType::F64;
  const Value x = leaf(*body, OpKind::Argument, "x", {{"index", int64_t{1}}});
  const NodeId doubled = body->add(OpKind::Scale, {x}, {{"factor", 2.0}}, "doubled");
  body->outputs = {{"0", {doubled, 0}}, {"1", x}};
  fused.body = body;
  const NodeId f = graph.add_node(std::move(fused), {{}, a});
  const NodeId sum = graph.add(OpKind::Add, {before, {f, 0}}, {}, "sum");
  graph.outputs = {{"grads:a", {sum, 0}}, {"same", {f, 1}}};

  Interpreter interpreter(module, Point{});
  interpreter.write(Space::Params, "a", {1, 2, 3});
  interpreter.run(graph);
  EXPECT_EQ(interpreter.output("same").data, (std::vector<double>{1, 2, 3}));
  interpreter.commit();
  interpreter.run(graph);
  interpreter.commit();
  EXPECT_EQ(interpreter.read(Space::Grads, "a"), (std::vector<double>{4, 8, 12}));
  EXPECT_EQ(interpreter.read(Space::Grads, "b"), (std::vector<double>{0, 0, 0}));
}

TEST(InterpreterDeath, SaysWhatIsMissing) {
  const Module module = two_parameters();
  Interpreter interpreter(module, Point{});
  EXPECT_EXIT(interpreter.read(Space::Params, "c"), testing::ExitedWithCode(70), "there is no parameter 'c'");
  EXPECT_EXIT(interpreter.read(Space::Params, "a+b"), testing::ExitedWithCode(70), "not neighbours");
  EXPECT_EXIT(run({OpKind::Embedding, {i32({1}, {5}), f64({2, 1}, {0, 0})}, {{"scale", 1.0}}}),
              testing::ExitedWithCode(70), "outside a table of 2 rows");
}

}  // namespace
}  // namespace tfc::ir
