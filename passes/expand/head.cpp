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
  const Value mask = operand(id, 1);
  Value x = operand(id, 0);
  if (type == "none") return masked(x, mask, name + ".masked");

  const std::string prefix = set.text("prefix"), tied = set.text("tied", "");
  // A table of factors: what counts as a token's vector is its row times the projection, both ways.
  if (!tied.empty() && !tied_projection_.empty())
    x = add(OpKind::LinearDx, {x, existing(tied_projection_ + ".weight")}, {}, prefix + ".narrowed");
  const int64_t out = set.integer("out"), d = width(x);
  Head& parts = heads_[id];
  parts.hidden =
      type == "lm" ? x : add(OpKind::Pool, {x, mask}, {{"kind", set.text("pool")}}, prefix + ".pool");
  parts.mask = type == "lm" ? mask : any_real(mask, prefix + ".any_real");
  parts.weight =
      tied.empty() ? parameter(prefix + ".weight", {out, d}, initialiser_.matrix(out, d)) : existing(tied);
  if (set.flag("bias")) parts.bias = parameter(prefix + ".bias", {out}, initialiser_.bias(d));
  const Value logits = add(OpKind::Linear, {parts.hidden, parts.weight, parts.bias}, {}, prefix + ".logits");
  return masked(logits, parts.mask, prefix + ".masked");
}

void Expander::loss(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const auto head = heads_.find(blocks_.operand(id, 0).node);
  TFC_CHECK(head != heads_.end(), "'" + block(id).name + "' is not fed by a head");
  const Head& parts = head->second;
  const Value sum = add(
      OpKind::LinearCrossEntropy, {parts.hidden, parts.weight, parts.bias, operand(id, 1), parts.mask},
      {{"ignore_index", set.integer("ignore_index")}, {"smoothing", set.real("smoothing", 0.0)}},
      block(id).name);
  const Value count{sum.node, 1};
  std::vector<Value> all = {sum, count};
  all.insert(all.end(), balances_.begin(), balances_.end());
  values_[{id, 0}] =
      balances_.empty() ? sum : add(OpKind::AddBalance, all, {}, block(id).name + ".balanced");
  values_[{id, 1}] = count;
}

}  // namespace tfc::passes
