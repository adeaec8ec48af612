// The other nodes of a layer: feed-forward, norm, residual, linear.
#include "passes/expand/expander.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

std::string gate_function(const std::string& activation) {
  if (activation == "swiglu") return "silu";
  if (activation == "geglu") return "gelu";
  if (activation == "reglu") return "relu";
  return "";
}

Value Expander::ffn(NodeId id) {
  const ir::Attributes& set = attributes(id);
  if (set.integer("experts", 0) > 0) return experts(id);
  const std::string prefix = set.text("prefix"), activation = set.text("activation");
  const std::string gate = gate_function(activation);
  const bool bias = set.flag("bias"), gated = !gate.empty();
  const Value x = operand(id, 0);
  const int64_t d = width(x), f = set.integer("d_ff");

  if (gated) parameter(prefix + ".gate.weight", {f, d}, initialiser_.matrix(f, d));
  parameter(prefix + ".up.weight", {f, d}, initialiser_.matrix(f, d), gated);
  if (gated && bias) parameter(prefix + ".gate.bias", {f}, initialiser_.bias(d));
  if (bias) parameter(prefix + ".up.bias", {f}, initialiser_.bias(d), gated);
  parameter(prefix + ".down.weight", {d, f}, initialiser_.residual_matrix(d, f));
  if (bias) parameter(prefix + ".down.bias", {d}, initialiser_.bias(f));

  Value inner;
  if (gated) {
    const Value open = linear(x, prefix + ".gate", bias);
    const Value up = linear(x, prefix + ".up", bias);
    const Value opened = add(OpKind::Activation, {open}, {{"kind", gate}}, prefix + ".act");
    inner = add(OpKind::Multiply, {opened, up}, {}, prefix + ".gated");
  } else {
    inner =
        add(OpKind::Activation, {linear(x, prefix + ".up", bias)}, {{"kind", activation}}, prefix + ".act");
  }
  inner = dropped(inner, set.real("dropout", 0.0), prefix + ".dropout");
  return linear(inner, prefix + ".down", bias);
}

Value Expander::apply_norm(Value x, const std::string& prefix, const std::string& type, double eps,
                           bool bias) {
  const int64_t d = width(x);
  const Value gamma = parameter(prefix + ".weight", {d}, kOnes);
  if (type == "rmsnorm") return add(OpKind::RmsNorm, {x, gamma}, {{"eps", eps}}, prefix);
  const Value beta = bias ? parameter(prefix + ".bias", {d}, kZeros) : Value{};
  return add(OpKind::LayerNorm, {x, gamma, beta}, {{"eps", eps}}, prefix);
}

Value Expander::norm(NodeId id) {
  const ir::Attributes& set = attributes(id);
  return apply_norm(operand(id, 0), set.text("prefix"), set.text("type"), set.real("eps"), set.flag("bias"));
}

Value Expander::residual(NodeId id) {
  std::vector<Value> operands;
  const double p = attributes(id).real("dropout", 0.0);
  for (uint32_t slot = 0; slot < blocks_.operand_count(id); ++slot) {
    const Value term = operand(id, slot);
    operands.push_back(slot == 0 ? term : dropped(term, p, block(id).name + ".dropout"));
  }
  return add(OpKind::Residual, operands, {{"scale", attributes(id).real("scale", 1.0)}}, block(id).name);
}

Value Expander::linear_block(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const std::string prefix = set.text("prefix");
  const Value x = operand(id, 0);
  const int64_t in = width(x), out = set.integer("out");
  parameter(prefix + ".weight", {out, in}, initialiser_.matrix(out, in));
  if (set.flag("bias")) parameter(prefix + ".bias", {out}, initialiser_.bias(in));
  return linear(x, prefix, set.flag("bias"));
}

}  // namespace tfc::passes
