// Attention: three projections, rotation where positions are rotary, the streaming primitive, one projection
// back.
#include "passes/expand/expander.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

void Expander::attention_parameters(NodeId id, int64_t own_width, int64_t memory_width) {
  const ir::Attributes& set = attributes(id);
  const std::string prefix = set.text("prefix");
  const int64_t e = set.integer("head_dim");
  const int64_t own = set.integer("heads") * e, shared = set.integer("kv_heads") * e;
  const struct {
    const char* suffix;
    int64_t rows, columns;
  } projections[] = {{".q", own, own_width}, {".k", shared, memory_width}, {".v", shared, memory_width}};

  const bool one_matrix =
      own_width == memory_width;  // as nn.MultiheadAttention: apart where the widths differ
  const int64_t joint_rows = own + 2 * shared;
  for (const auto& p : projections) {
    parameter(prefix + p.suffix + ".weight", {p.rows, p.columns},
              initialiser_.attention_input(one_matrix ? joint_rows : p.rows, p.columns),
              one_matrix ? p.suffix[1] != 'q' : p.suffix[1] == 'v');
  }
  if (set.flag("qkv_bias")) {
    for (const auto& p : projections) {
      parameter(prefix + p.suffix + ".bias", {p.rows}, initialiser_.attention_bias(), p.suffix[1] != 'q');
    }
  }
  parameter(prefix + ".o.weight", {own_width, own}, initialiser_.attention_output(own_width, own));
  if (set.flag("o_bias")) parameter(prefix + ".o.bias", {own_width}, initialiser_.attention_bias());
}

Value Expander::rotated(NodeId id, Value x, int64_t heads, std::string name) {
  const std::string style = attributes(id).text("rope", "");
  if (style.empty()) return x;
  return add(OpKind::Rope, {x, rope_table(id, result.type(x).shape[1])},
             {{"heads", heads},
              {"head_dim", attributes(id).integer("head_dim")},
              {"style", style},
              {"inverse", false}},
             std::move(name));
}

/// Who sees whom besides the masks: windows, prefixes and distances belong to self-attention, documents to all.
void Expander::add_sight(NodeId id, Value x, Value memory, std::vector<Value>& operands, ir::Attributes& settings) {
  const ir::Attributes& set = attributes(id);
  const ir::Dim own = result.type(x).shape[1], keys = result.type(memory).shape[1];
  const bool self = !operand(id, 1).valid();
  operands.resize(10);
  if (self && set.flag("prefix_lm")) operands[5] = declared("prefix", own);
  operands[6] = declared("documents", own);
  operands[7] = declared("documents", keys);
  if (self && set.flag("alibi")) {
    operands[8] = operands[9] = declared("positions", own);
    settings.set("alibi", true);
  }
  for (const char* key : {"window", "after"}) {
    if (self && set.integer(key, 0) > 0) settings.set(key, set.integer(key, 0));
  }
  while (operands.size() > 4 && !operands.back().valid()) operands.pop_back();
}

Value Expander::attention(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const std::string prefix = set.text("prefix");
  const Value x = operand(id, 0);
  const bool cross = operand(id, 1).valid();
  const Value memory = cross ? operand(id, 1) : x;
  attention_parameters(id, width(x), width(memory));

  const int64_t heads = set.integer("heads"), kv_heads = set.integer("kv_heads");
  const bool bias = set.flag("qkv_bias");
  Value q = linear(x, prefix + ".q", bias);
  Value k = linear(memory, prefix + ".k", bias);
  const Value v = linear(memory, prefix + ".v", bias);
  if (!cross) {  // a memory's tokens have positions of another sequence
    q = rotated(id, q, heads, prefix + ".q.rope");
    k = rotated(id, k, kv_heads, prefix + ".k.rope");
  }
  ir::Attributes settings = {{"heads", heads},
                             {"kv_heads", kv_heads},
                             {"head_dim", set.integer("head_dim")},
                             {"scale", set.real("scale")},
                             {"causal", set.flag("causal") && !cross}};
  std::vector<Value> operands = {q, k, v, operand(id, 2)};
  add_sight(id, x, memory, operands, settings);
  if (const double p = set.real("dropout", 0.0); p > 0) {
    operands.resize(12);
    operands.push_back(dropout_keys(result.type(q)));
    settings.set("p", p);
    settings.set("place", prefix);
  }
  const Value mixed = add(OpKind::Attention, operands, settings, prefix);
  if (settings.has("p")) result.edit(mixed.node).attributes.set("place", result.node(mixed.node).name);
  return linear(mixed, prefix + ".o", set.flag("o_bias"));
}

}  // namespace tfc::passes
