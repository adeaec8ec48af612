// Every derivative rule against central differences of the interpreter's forward, on the cases of
// op_cases.cpp.
#include "ir/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "ir/op_cases.h"

namespace tfc::ir {
namespace {

/// Runs one node's rule; the upstream gradient of result i is an input leaf "u<i>".
class OneNodeContext : public GradientContext {
 public:
  OneNodeContext(CaseGraph& made, const std::vector<bool>& flows) : made_(made), given_(made.leaves.size()) {
    for (uint32_t i = 0; i < flows.size(); ++i)
      upstream_.push_back(flows[i] ? leaf("u" + std::to_string(i), made.graph.type({made.node, i}))
                                   : Value{});
  }

  const Node& node() const override { return made_.graph.node(made_.node); }
  Value operand(uint32_t slot) const override { return made_.graph.operand(made_.node, slot); }
  size_t operand_count() const override { return made_.graph.operand_count(made_.node); }
  Value result(uint32_t index) const override { return {made_.node, index}; }
  Value upstream(uint32_t index) const override { return upstream_[index]; }
  bool wanted(uint32_t slot) const override { return made_.graph.type(operand(slot)).dtype == DType::F64; }
  NodeId add(OpKind op, const std::vector<Value>& operands, Attributes attributes,
             std::string_view suffix) override {
    used.insert(op);
    return made_.graph.add(op, operands, std::move(attributes), "op." + std::string(suffix));
  }
  Value zeros(const Type& type) override {
    Node node;
    node.op = OpKind::Zeros;
    node.results = {type};
    return {made_.graph.add_node(std::move(node), {}), 0};
  }
  void give(uint32_t slot, Value gradient) override {
    EXPECT_EQ(made_.graph.type(gradient), made_.graph.type(operand(slot))) << "gradient of operand " << slot;
    given_[slot] =
        given_[slot].valid() ? Value{add(OpKind::Add, {given_[slot], gradient}, {}, "sum")} : gradient;
  }
  Value mean_flag() override { return leaf("mean", {DType::F64, {}}); }
  void replace_result(uint32_t index, Value value) override { replaced[index] = value; }
  Graph& graph() override { return made_.graph; }

  Value given(uint32_t slot) const { return given_[slot]; }

  std::set<OpKind> used;
  std::map<uint32_t, Value> replaced;

 private:
  Value leaf(const std::string& name, const Type& type) {
    Node node;
    node.op = OpKind::Input;
    node.name = name;
    node.attributes.set("name", name);
    node.results = {type};
    return {made_.graph.add_node(std::move(node), {}), 0};
  }

  CaseGraph& made_;
  std::vector<Value> upstream_;
  std::vector<Value> given_;
};

class GradientCheck {
 public:
  explicit GradientCheck(const OpCase& op_case) : case_(op_case), made_(build(op_case)) { run(); }

  std::set<OpKind> used;

 private:
  bool is_loss() const { return case_.op == OpKind::LinearLoss; }
  /// A loss that is part of another: its operands 0 and 1 are the other's sum and count.
  bool is_part() const { return case_.op == OpKind::AddBalance; }

  /// Results that exist for the backward pass alone have no upstream.
  std::vector<bool> flows() const {
    std::vector<bool> flows(made_.graph.node(made_.node).results.size(), true);
    if (is_loss() || is_part()) flows.assign(flows.size(), false);
    if (case_.op == OpKind::LayerNorm || case_.op == OpKind::RmsNorm || case_.op == OpKind::Attention ||
        case_.op == OpKind::Route || case_.op == OpKind::Balance)
      for (size_t i = 1; i < flows.size(); ++i) flows[i] = false;
    return flows;
  }

  /// sum over results of upstream * result; of a loss its sum, or its mean.
  double objective(const std::vector<Tensor>& operands) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& operand : operands) pointers.push_back(is_absent(operand) ? nullptr : &operand);
    std::vector<Tensor> results;
    for (const Type& type : made_.graph.node(made_.node).results)
      results.emplace_back(type.dtype, shape_at(type, Point{}));
    evaluate(case_.op, EvalContext{pointers, results, case_.attributes});
    const double share = is_loss() ? case_.attributes.real("share", 1.0) : 1;
    if (is_loss()) return share * (case_.mean ? results[0][0] / results[1][0] : results[0][0]);
    if (is_part()) return case_.mean ? results[0][0] / operands[1][0] : results[0][0];
    double sum = 0;
    for (size_t i = 0; i < results.size(); ++i)
      if (upstream_.contains("u" + std::to_string(i)))
        for (int64_t e = 0; e < results[i].elements(); ++e)
          sum += upstream_.at("u" + std::to_string(i))[e] * results[i][e];
    return sum;
  }

  void run() {
    const std::vector<bool> flow = flows();
    OneNodeContext context(made_, flow);
    gradient(case_.op, context);
    used = context.used;

    Module module;
    module.real = DType::F64;
    Interpreter interpreter(module, Point{});
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (size_t i = 0; i < case_.operands.size(); ++i)
      interpreter.inputs["x" + std::to_string(i)] = case_.operands[i];
    for (uint32_t i = 0; i < flow.size(); ++i) {
      if (!flow[i]) continue;
      const Type type = made_.graph.type({made_.node, i});
      Tensor tensor(type.dtype, shape_at(type, Point{}));
      for (double& value : tensor.data) value = normal(random);
      upstream_["u" + std::to_string(i)] = interpreter.inputs["u" + std::to_string(i)] = tensor;
    }
    interpreter.inputs["mean"] = Tensor(DType::F64, {}, {case_.mean ? 1.0 : 0.0});
    interpreter.run(made_.graph);

    if (is_loss()) {
      for (uint32_t i = 0; i < 2; ++i)
        EXPECT_EQ(interpreter.value(context.replaced.at(i)).data, interpreter.value({made_.node, i}).data);
    }
    for (uint32_t slot = 0; slot < case_.operands.size(); ++slot) {
      if (case_.operands[slot].dtype != DType::F64 || is_absent(case_.operands[slot])) continue;
      if (is_part() && slot < 2) continue;
      if (case_.op == OpKind::Rope && slot == 1) continue;  // its table is a function of positions alone
      if (is_loss() && slot > 2) continue;                  // targets and weights are data
      ASSERT_TRUE(context.given(slot).valid()) << "no gradient of operand " << slot;
      compare(slot, interpreter.value(context.given(slot)));
    }
  }

  void compare(uint32_t slot, const Tensor& analytic) {
    std::vector<Tensor> operands = case_.operands;
    constexpr double kStep = 1e-5;
    for (int64_t i = 0; i < operands[slot].elements(); ++i) {
      const double before = operands[slot][i];
      operands[slot][i] = before + kStep;
      const double above = objective(operands);
      operands[slot][i] = before - kStep;
      const double below = objective(operands);
      operands[slot][i] = before;
      const double numeric = (above - below) / (2 * kStep);
      EXPECT_NEAR(analytic[i], numeric, 1e-7 * (1 + std::abs(numeric)))
          << "operand " << slot << ", element " << i;
    }
  }

  const OpCase& case_;
  CaseGraph made_;
  std::map<std::string, Tensor> upstream_;
};

/// Reads the table itself, so that an operation added there without a case here is a failure.
TEST(Gradients, EveryOperationHasACaseAndAgreesWithDifferences) {
  std::set<OpKind> used_by_rules;
  for (const OpInfo& op : all_ops()) {
    if (op.op_class != OpClass::Primitive) continue;
    const std::vector<OpCase> cases = cases_of(op.kind);
    EXPECT_FALSE(cases.empty()) << op.text << " has no entry in op_cases.cpp";
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(std::string(op.text) + ", case " + std::to_string(i));
      const GradientCheck check(cases[i]);
      used_by_rules.insert(check.used.begin(), check.used.end());
    }
  }
  for (const OpInfo& op : all_ops()) {
    if (op.op_class != OpClass::GradientPrimitive) continue;
    EXPECT_TRUE(used_by_rules.contains(op.kind) || !cases_of(op.kind).empty())
        << op.text << " is used by no derivative rule and has no entry in op_cases.cpp";
  }
}

/// With nothing flowing into some results of a split, zeros stand in their place.
TEST(Gradients, SplitWithOneUpstreamOnly) {
  CaseGraph made = build(cases_of(OpKind::Split)[0]);
  OneNodeContext context(made, {false, true, false});
  gradient(OpKind::Split, context);
  Module module;
  Interpreter interpreter(module, Point{});
  interpreter.inputs["x0"] = cases_of(OpKind::Split)[0].operands[0];
  interpreter.inputs["u1"] = Tensor(DType::F64, {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  interpreter.run(made.graph);
  const Tensor& dx = interpreter.value(context.given(0));
  for (int64_t r = 0; r < 6; ++r)
    for (int64_t c = 0; c < 9; ++c) EXPECT_EQ(dx.row(r)[c], c == 5 ? static_cast<double>(r + 1) : 0);
}

TEST(Gradients, NothingFlowsBackNothingIsAdded) {
  for (const OpInfo& op : all_ops()) {
    if (op.op_class != OpClass::Primitive || op.kind == OpKind::LinearLoss || op.kind == OpKind::AddBalance)
      continue;
    CaseGraph made = build(cases_of(op.kind)[0]);
    OneNodeContext context(made, std::vector<bool>(made.graph.node(made.node).results.size(), false));
    const size_t before = made.graph.node_count();
    gradient(op.kind, context);
    EXPECT_EQ(made.graph.node_count(), before) << op.text;
  }
}

}  // namespace
}  // namespace tfc::ir
