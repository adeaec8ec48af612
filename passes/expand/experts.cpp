// A feed-forward of several experts, of which each token sees a few (Shazeer et al. 2017; Fedus et al. 2021).
#include "passes/expand/expander.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// Tokens are routed, their rows sorted by expert, and what the experts make of them is summed up token by
/// token. The experts' weights lie below each other, gate and up of one before those of the next.
Value Expander::experts(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const std::string prefix = set.text("prefix"), activation = set.text("activation");
  const std::string gate = gate_function(activation), name = prefix + ".experts";
  const int64_t X = set.integer("experts");
  const Value x = operand(id, 0);
  const int64_t d = width(x), f = set.integer("d_ff");
  const bool bias = set.flag("bias"), gated = !gate.empty();

  const Value router = parameter(prefix + ".router.weight", {X, d}, initialiser_.matrix(X, d));
  const auto parts = [&](const char* kind) {
    std::vector<std::string> list = {std::string("up.") + kind};
    if (gated) list.insert(list.begin(), std::string("gate.") + kind);
    return list;
  };
  const Value up_weight = joined_parts(name, X, parts("weight"), {f, d}, initialiser_.matrix(f, d));
  const Value up_bias = bias ? joined_parts(name, X, parts("bias"), {f}, initialiser_.bias(d)) : Value{};
  const Value down_weight =
      joined_parts(name, X, {"down.weight"}, {d, f}, initialiser_.residual_matrix(d, f));
  const Value down_bias = bias ? joined_parts(name, X, {"down.bias"}, {d}, initialiser_.bias(f)) : Value{};

  const Value logits = add(OpKind::Linear, {x, router}, {}, prefix + ".router");
  const NodeId route = add(OpKind::Route, {logits, operand(id, 1)},
                           {{"top_k", set.integer("top_k")},
                            {"renormalize", set.flag("renormalize")},
                            {"capacity", set.real("capacity")}},
                           prefix + ".route")
                           .node;
  const Value weights{route, 0}, chosen{route, 1}, positions{route, 2}, starts{route, 3};
  if (const double factor = set.real("aux_loss"); factor > 0)
    balances_.push_back(add(OpKind::Balance, {logits, chosen}, {{"factor", factor}}, prefix + ".balance"));

  const Value rows = add(OpKind::Dispatch, {x, positions, starts}, {}, prefix + ".dispatch");
  Value inner =
      add(OpKind::ExpertLinear, {rows, up_weight, up_bias, starts}, {}, name + (gated ? ".gate+up" : ".up"));
  if (gated) {
    const Value open =
        add(OpKind::Split, {inner}, {{"widths", std::vector<int64_t>{f, f}}}, name + ".gate+up.split");
    const Value opened = add(OpKind::Activation, {open}, {{"kind", gate}}, name + ".act");
    inner = add(OpKind::Multiply, {opened, Value{open.node, 1}}, {}, name + ".gated");
  } else {
    inner = add(OpKind::Activation, {inner}, {{"kind", activation}}, name + ".act");
  }
  if (const double p = set.real("dropout", 0.0); p > 0) {
    const Value keys = dropout_keys(result.type(x));
    inner = dropped(inner, p, prefix + ".dropout",
                    add(OpKind::ExpertKeys, {keys, chosen, positions, starts}, {}, prefix + ".dropout_keys"));
  }
  const Value down = add(OpKind::ExpertLinear, {inner, down_weight, down_bias, starts}, {}, name + ".down");
  return add(OpKind::Combine, {down, positions, starts, weights}, {}, prefix);
}

}  // namespace tfc::passes
