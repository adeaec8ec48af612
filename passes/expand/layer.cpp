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
  if (bias) parameter(prefix + ".down.bias", {d}, initialiser_.residual_bias(f));

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
  const std::string name = block(id).name;
  const double p = attributes(id).real("dropout", 0.0);
  const bool scaled = attributes(id).has("gamma"), one = blocks_.operand_count(id) == 2;
  for (uint32_t slot = 0; slot < blocks_.operand_count(id); ++slot) {
    const Value term = operand(id, slot);
    const bool drops_later = slot == 0 || (scaled && one);
    operands.push_back(drops_later ? term : dropped(term, p, name + ".dropout"));
  }
  if (scaled) operands = {operands[0], layer_scaled(id, {operands.begin() + 1, operands.end()})};
  if (scaled && one) operands[1] = dropped(operands[1], p, name + ".dropout");
  return add(OpKind::Residual, operands, {{"scale", attributes(id).real("scale", 1.0)}}, name);
}

/// LayerScale (Touvron et al. 2021). Dropout comes after it where it can, for then a product takes both along.
Value Expander::layer_scaled(NodeId id, const std::vector<Value>& branches) {
  const std::string name = block(id).name;
  Value sum = branches[0];
  for (size_t i = 1; i < branches.size(); ++i)
    sum = add(OpKind::Add, {sum, branches[i]}, {}, name + ".branches");
  const Value gamma = parameter(attributes(id).text("prefix") + ".gamma", {width(sum)},
                                {ir::Init::Kind::Constant, attributes(id).real("gamma")});
  return add(OpKind::ScaleColumns, {sum, gamma}, {}, name + ".scaled");
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
