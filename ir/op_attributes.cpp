#include "ir/op_attributes.h"

#include <algorithm>
#include <map>

#include "ir/check.h"

namespace tfc::ir {
namespace {

struct OpAttributes {
  OpKind kind;
  std::string_view
      keys;  // "key:type ...": b boolean, i integer, r real, s string, d dimension, l list; ? optional
};

// Keys of the block nodes that block.layer hands on, with its prefixes.
#define TFC_ATTENTION(p)                                                                                   \
  p "heads:i " p "kv_heads:i " p "head_dim:i " p "scale:r " p "causal:b? " p "qkv_bias:b " p "o_bias:b " p \
    "rope:s? " p "rope_theta:r? " p "dropout:r? " p "window:i? " p "after:i? " p "alibi:b? " p "prefix_lm:b? "
#define TFC_FFN(p)                                                                                        \
  p "d_ff:i " p "activation:s " p "bias:b " p "dropout:r? " p "experts:i? " p "top_k:i? " p "renormalize:b? " \
    p "aux_loss:r? " p "capacity:r? "
#define TFC_NORM(p) p "type:s " p "eps:r " p "bias:b "

#define TFC_ATTENTION_OP "heads:i kv_heads:i head_dim:i scale:r causal:b? window:i? after:i? alibi:b? p:r? place:s?"

constexpr OpAttributes kTable[] = {
    {OpKind::Input, "name:s"},
    {OpKind::Param, "name:s"},
    {OpKind::State, "space:s name:s"},
    {OpKind::Argument, "index:i"},
    {OpKind::BlockEmbedding,
     "table:s vocab:i? scale:r? tokens:d position:s pos_table:s? max_seq:i? types:i? type_table:s? dim:i? "
     "projection:s? patch:i? "
     "class_token:b? norm:b? "
     "norm.type:s? "
     "norm.eps:r? norm.bias:b? norm.prefix:s? dropout:r?"},
    {OpKind::BlockLayer, "prefix:s weights:s? cross:b? placement:s depth:i " TFC_ATTENTION("attention.")
                             TFC_FFN("ffn.") TFC_NORM("norm.") "residual.scale:r? residual.dropout:r? residual.gamma:r?"},
    {OpKind::BlockAttention, "prefix:s " TFC_ATTENTION("")},
    {OpKind::BlockFfn, "prefix:s " TFC_FFN("")},
    {OpKind::BlockNorm, "prefix:s final:s? depth:i? " TFC_NORM("")},
    {OpKind::BlockResidual, "scale:r? dropout:r? gamma:r? prefix:s?"},
    {OpKind::BlockLinear, "prefix:s out:i bias:b"},
    {OpKind::BlockActivation, "kind:s"},
    {OpKind::BlockHead, "type:s prefix:s? out:i? bias:b? tied:s? pool:s? norm.type:s? norm.eps:r? norm.bias:b?"},
    {OpKind::BlockLoss, "kind:s? ignore_index:i smoothing:r? share:r?"},
    {OpKind::Embedding, "scale:r"},
    {OpKind::PositionRows, "tokens:d"},
    {OpKind::Sinusoid, "width:i tokens:d"},
    {OpKind::RopeTable, "width:i theta:r tokens:d"},
    {OpKind::Rope, "heads:i head_dim:i style:s inverse:b?"},
    {OpKind::ColumnSum, "cancelled:l?"},
    {OpKind::Route, "top_k:i renormalize:b capacity:r"},
    {OpKind::RouteGrad, "renormalize:b"},
    {OpKind::Balance, "factor:r"},
    {OpKind::AddBalance, "share:r?"},
    {OpKind::EmbeddingGrad, "scale:r rows:i"},
    {OpKind::PositionRowsGrad, "rows:i"},
    {OpKind::Patches, "size:i"},
    {OpKind::PatchesGrad, "size:i image:l"},
    {OpKind::Scale, "factor:r"},
    {OpKind::Activation, "kind:s"},
    {OpKind::ActivationGrad, "kind:s"},
    {OpKind::DropoutKeys, "batch:d tokens:d"},
    {OpKind::Dropout, "p:r place:s"},
    {OpKind::Residual, "scale:r"},
    {OpKind::Split, "widths:l"},
    {OpKind::LayerNorm, "eps:r"},
    {OpKind::RmsNorm, "eps:r"},
    {OpKind::Attention, TFC_ATTENTION_OP},
    {OpKind::AttentionGrad, TFC_ATTENTION_OP},
    {OpKind::AttentionWeights, TFC_ATTENTION_OP},
    {OpKind::CacheAppend, "ring:b?"},
    {OpKind::Pool, "kind:s"},
    {OpKind::PoolGrad, "kind:s tokens:d"},
    {OpKind::LinearLoss, "kind:s? ignore_index:i smoothing:r share:r?"},
    {OpKind::LinearLossGrad, "kind:s? ignore_index:i smoothing:r share:r?"},
    {OpKind::LinearLogprob, "ignore_index:i"},
    {OpKind::Fused, "kernel:s"},
};

size_t type_from_letter(char letter) {
  switch (letter) {
    case 'b':
      return Attribute(false).index();
    case 'i':
      return Attribute(int64_t{0}).index();
    case 'r':
      return Attribute(0.0).index();
    case 's':
      return Attribute(std::string()).index();
    case 'd':
      return Attribute(Dim()).index();
    case 'l':
      return Attribute(std::vector<int64_t>()).index();
    default:
      compiler_fault(std::string("no attribute type has the letter ") + letter);
  }
}

constexpr std::string_view kTypeWords[] = {"true or false", "an integer",  "a real number",
                                           "a string",      "a dimension", "a list of integers"};

std::vector<AttributeRule> parse_rules(std::string_view keys) {
  std::vector<AttributeRule> rules;
  while (!keys.empty()) {
    const std::string_view one = keys.substr(0, keys.find(' '));
    keys.remove_prefix(std::min(keys.size(), one.size() + 1));
    if (one.empty()) continue;
    const size_t colon = one.rfind(':');
    rules.push_back({std::string(one.substr(0, colon)), type_from_letter(one[colon + 1]), one.back() != '?'});
  }
  std::sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return rules;
}

}  // namespace

const std::vector<AttributeRule>& attribute_rules(OpKind kind) {
  static const auto by_kind = [] {
    std::map<OpKind, std::vector<AttributeRule>> map;
    for (const OpAttributes& row : kTable) map[row.kind] = parse_rules(row.keys);
    return map;
  }();
  static const std::vector<AttributeRule> none;
  const auto found = by_kind.find(kind);
  return found == by_kind.end() ? none : found->second;
}

std::string check_attributes(OpKind kind, const Attributes& attributes) {
  const std::vector<AttributeRule>& rules = attribute_rules(kind);
  for (const AttributeRule& rule : rules) {
    const Attribute* value = attributes.find(rule.key);
    if (value == nullptr && rule.required) return "attribute '" + rule.key + "' is missing";
    if (value != nullptr && value->index() != rule.type)
      return "attribute '" + rule.key + "' is " + attribute_text(*value) + ", expected " +
             std::string(kTypeWords[rule.type]);
  }
  for (const auto& [key, value] : attributes.entries()) {
    if (std::any_of(rules.begin(), rules.end(), [&key = key](const auto& rule) { return rule.key == key; }))
      continue;
    std::vector<std::string> known;
    for (const AttributeRule& rule : rules) known.push_back(rule.key);
    const std::string near = nearest_name(key, known);
    return "attribute '" + key + "' is unknown" + (near.empty() ? "" : ", did you mean '" + near + "'?");
  }
  return "";
}

}  // namespace tfc::ir
