#include "frontend/resolve_settings.h"

#include <cmath>

namespace tfc::frontend {
namespace {

constexpr int64_t kWidest = 1 << 20;

std::string setting(std::string_view key, int64_t value) {
  return std::string(key) + " = " + std::to_string(value);
}

/// "numbers near it that do are 4 and 8"
std::string near_divisors(int64_t number, int64_t of) {
  int64_t below = number, above = number;
  while (below > 1 && of % below != 0) --below;
  while (above < of && of % above != 0) ++above;
  if (below == above) return "the nearest that does is " + std::to_string(below);
  return "numbers near it that do are " + std::to_string(below) + " and " + std::to_string(above);
}

bool is_gated(std::string_view activation) {
  return activation == "swiglu" || activation == "geglu" || activation == "reglu";
}

void resolve_biases(const Scope& scope, AttentionSettings& attention) {
  const bool bias = scope.flag("bias", true);
  attention.qkv_bias = scope.overrides("bias", "qkv_bias") ? bias : scope.flag("qkv_bias", bias);
  attention.o_bias = scope.overrides("bias", "o_bias") ? bias : scope.flag("o_bias", bias);
}

void check_kv_heads(const Scope& scope, const AttentionSettings& attention, ir::Diagnostics& diagnostics) {
  if (attention.heads <= 0 || attention.kv_heads <= 0 || attention.heads % attention.kv_heads == 0) return;
  diagnostics
      .error(scope.place("kv_heads"), setting("kv_heads", attention.kv_heads) + " does not divide " +
                                          setting("heads", attention.heads))
      .notes.push_back(near_divisors(std::min(attention.kv_heads, attention.heads), attention.heads));
}

/// 0 when heads do not divide the width, which is reported.
int64_t default_head_dim(const Scope& scope, int64_t heads, int64_t d_model, ir::Diagnostics& diagnostics) {
  if (heads <= 0 || d_model <= 0) return 0;
  if (d_model % heads == 0) return d_model / heads;
  ir::Diagnostic& error = diagnostics.error(
      scope.place("heads"), setting("heads", heads) + " does not divide " + setting("d_model", d_model));
  error.notes.push_back(near_divisors(std::min(heads, d_model), d_model));
  error.notes.push_back("or write head_dim, the width of a head");
  return 0;
}

/// Self-attention alone has windows and prefixes.
void resolve_sight(const Scope& scope, const Description& description, AttentionSettings& attention,
                   ir::Diagnostics& diagnostics) {
  attention.window = scope.integer("window", 0);
  const bool cleared = attention.window == 0 && scope.overrides("window", "window_after");
  attention.window_after = cleared ? 0 : scope.integer("window_after", 0);
  attention.prefix = scope.flag("prefix", false);
  const std::string& kind = description.model.kind;
  if (attention.window_after > 0 && kind == "decoder")
    diagnostics.error(scope.place("window_after"), "no token of a decoder sees a later one; leave window_after out");
  if (attention.window_after > 0 && attention.window == 0)
    diagnostics.error(scope.place("window_after"), "'window_after' needs a window: without one a token sees all");
  if (attention.prefix && kind == "encoder")
    diagnostics.error(scope.place("prefix"), "an encoder is two-way everywhere: prefix is for decoders");
  if (attention.prefix && !description.inputs.prefix)
    diagnostics.error(scope.place("prefix"), "prefix attention needs the rows' prefixes")
        .notes.push_back("write prefix = true in [inputs] too");
}

MoeSettings resolve_moe(const Scope& scope, const Description& description, ir::Diagnostics& diagnostics) {
  MoeSettings moe;
  moe.experts = scope.integer("experts", 0);
  if (moe.experts == 0) {
    if (!scope.empty() && !scope.has("experts") && !scope.has_refused())
      diagnostics.error(scope.place("experts"), "a mixture of experts needs experts, their number");
    return {};
  }
  moe.top_k = scope.integer("top_k", std::min<int64_t>(moe.top_k, moe.experts));
  if (moe.top_k > moe.experts)
    diagnostics.error(scope.place("top_k"),
                      setting("top_k", moe.top_k) + " is more than " + setting("experts", moe.experts));
  moe.renormalize = scope.flag("renormalize", true);
  moe.aux_loss = scope.real("aux_loss", 0.0);
  moe.capacity = scope.real("capacity", 0.0);
  if (moe.aux_loss > 0 && !description.has_loss_that_counts())
    diagnostics.warning("unused-key", scope.find("aux_loss")->key,
                        "'aux_loss' has no effect: it is a part of the loss, which this model has none of");
  return moe;
}

}  // namespace

AttentionSettings resolve_attention(const Scope& scope, const Description& description, bool self,
                                    ir::Diagnostics& diagnostics) {
  AttentionSettings attention;
  attention.heads = scope.integer("heads", 0);
  attention.kv_heads = scope.integer("kv_heads", attention.heads);
  check_kv_heads(scope, attention, diagnostics);
  attention.head_dim = scope.has("head_dim") || scope.was_refused("head_dim")
                           ? scope.integer("head_dim", 0)
                           : default_head_dim(scope, attention.heads, description.model.d_model, diagnostics);
  const char* width_key = scope.has("head_dim") ? "head_dim" : "heads";
  if (self && description.position.type == "rope" && attention.head_dim % 2 != 0)
    diagnostics.error(scope.place(width_key), "rope turns pairs of columns, but " +
                                                  setting("head_dim", attention.head_dim) + " is odd");
  if (attention.heads * attention.head_dim > kWidest)
    diagnostics.error(scope.place(width_key), "heads * head_dim is " +
                                                  std::to_string(attention.heads * attention.head_dim) +
                                                  ", expected at most " + std::to_string(kWidest));
  const double standard =
      attention.head_dim > 0 ? 1.0 / std::sqrt(static_cast<double>(attention.head_dim)) : 1.0;
  attention.scale = scope.real("scale", standard);
  attention.dropout = scope.real("dropout", 0.0);
  resolve_biases(scope, attention);
  if (self) resolve_sight(scope, description, attention, diagnostics);
  return attention;
}

FfnSettings resolve_ffn(const Scope& scope, const Description& description, ir::Diagnostics& diagnostics) {
  FfnSettings ffn;
  ffn.activation = scope.text("activation", "gelu");
  ffn.bias = scope.flag("bias", true);
  ffn.dropout = scope.real("dropout", 0.0);
  const int64_t d_model = description.model.d_model;
  const bool gated = is_gated(ffn.activation);
  const int64_t multiple = scope.integer("d_ff_multiple", 64);
  const int64_t standard = gated ? (8 * d_model + 3 * multiple - 1) / (3 * multiple) * multiple : 4 * d_model;
  ffn.d_ff = scope.integer("d_ff", standard);
  if (ffn.d_ff > kWidest)
    diagnostics.error(scope.place("d_ff"), "the default of d_ff is " + std::to_string(ffn.d_ff) + ", above " +
                                               std::to_string(kWidest) + "; write d_ff");
  ffn.moe = resolve_moe(scope.within("moe"), description, diagnostics);
  return ffn;
}

NormSettings resolve_norm(const Scope& scope, ir::Diagnostics& diagnostics) {
  NormSettings norm;
  norm.type = scope.text("type", "layernorm");
  norm.placement = scope.text("placement", "pre");
  norm.eps = scope.real("eps", 1e-5);
  norm.bias = scope.flag("bias", norm.type == "layernorm");
  if (norm.type != "rmsnorm") return norm;
  // A bias that a wider table gives to its layernorms is not meant for this norm.
  if (norm.bias && !scope.overrides("type", "bias"))
    diagnostics.error(scope.place("bias"),
                      "rmsnorm has no bias; leave bias out or write type = \"layernorm\"");
  norm.bias = false;
  return norm;
}

ResidualSettings resolve_residual(const Scope& scope) {
  ResidualSettings residual{scope.real("scale", 1.0), scope.real("dropout", 0.0), std::nullopt};
  if (scope.has("gamma")) residual.gamma = scope.real("gamma", 0);
  return residual;
}

}  // namespace tfc::frontend
