// What stands on the stack: output projection, classifier, and the loss, which reads the hidden states rather
// than the logits, so that a training step never holds the logits whole.
#include "ir/check.h"
#include "passes/expand/expander.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

Value Expander::head(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const std::string type = set.text("type"), name = block(id).name;
  const Value x = operand(id, 0), mask = operand(id, 1);
  if (type == "none") return masked(x, mask, name + ".masked");

  const std::string prefix = set.text("prefix"), tied = set.text("tied", ""), pool = set.text("pool", "");
  const int64_t out = set.integer("out");
  Head& parts = heads_[id];
  parts.hidden = type == "mlm" ? transformed(id, x) : x;
  // A table of factors: what counts as a token's vector is its row times the projection, both ways.
  if (const std::string projection = tied.empty() ? "" : tied_.at(tied); !projection.empty())
    parts.hidden = add(OpKind::LinearDx, {parts.hidden, existing(projection + ".weight")}, {}, prefix + ".narrowed");
  parts.mask = mask;
  if (!pool.empty()) {
    parts.hidden = add(OpKind::Pool, {x, mask}, {{"kind", pool}}, prefix + ".pool");
    parts.mask = any_real(mask, prefix + ".any_real");
  }
  const int64_t d = width(parts.hidden);
  parts.weight =
      tied.empty() ? parameter(prefix + ".weight", {out, d}, initialiser_.matrix(out, d)) : existing(tied);
  if (set.flag("bias")) parts.bias = parameter(prefix + ".bias", {out}, initialiser_.bias(d));
  const Value logits = add(OpKind::Linear, {parts.hidden, parts.weight, parts.bias}, {}, prefix + ".logits");
  return masked(logits, parts.mask, prefix + ".masked");
}

/// What BERT does to the hidden states before it compares them with the token table.
Value Expander::transformed(NodeId id, Value x) {
  const ir::Attributes& set = attributes(id);
  const std::string prefix = set.text("prefix");
  const int64_t d = width(x);
  parameter(prefix + ".transform.weight", {d, d}, initialiser_.matrix(d, d));
  parameter(prefix + ".transform.bias", {d}, initialiser_.bias(d));
  const Value y = linear(x, prefix + ".transform", true);
  const Value act = add(OpKind::Activation, {y}, {{"kind", std::string("gelu")}}, prefix + ".act");
  return apply_norm(act, prefix + ".norm", set.text("norm.type"), set.real("norm.eps"), set.flag("norm.bias"));
}

void Expander::loss(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const auto head = heads_.find(blocks_.operand(id, 0).node);
  TFC_CHECK(head != heads_.end(), "'" + block(id).name + "' is not fed by a head");
  const Head& parts = head->second;
  ir::Attributes settings{{"ignore_index", set.integer("ignore_index")}, {"smoothing", set.real("smoothing", 0.0)}};
  for (const char* key : {"kind", "share"})
    if (const ir::Attribute* value = set.find(key)) settings.set(key, *value);
  std::vector<Value> operands = {parts.hidden, parts.weight, parts.bias, operand(id, 1), parts.mask};
  if (operand(id, 2).valid()) operands.push_back(operand(id, 2));
  const Value sum = add(OpKind::LinearLoss, operands, std::move(settings), block(id).name);
  const Value count{sum.node, 1};
  values_[{id, 0}] = sum;
  values_[{id, 1}] = count;
  if (balances_.empty() || !brings_balance(id)) return;
  std::vector<Value> all = {sum, count};
  all.insert(all.end(), balances_.begin(), balances_.end());
  ir::Attributes share;
  if (set.has("share")) share.set("share", set.real("share"));
  values_[{id, 0}] = add(OpKind::AddBalance, all, std::move(share), block(id).name + ".balanced");
}

/// Of several heads the first whose loss counts brings the experts' balance into the whole loss.
bool Expander::brings_balance(NodeId loss) const {
  for (const ir::Output& output : blocks_.outputs) {
    const NodeId id = output.value.node;
    if (block(id).op == OpKind::BlockLoss && attributes(id).real("share", 1.0) > 0) return id == loss;
  }
  return false;
}

}  // namespace tfc::passes
