#include "frontend/resolved_toml.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "ir/text.h"

namespace tfc::frontend {
namespace {

std::string literal(int64_t value) { return std::to_string(value); }
std::string literal(double value) { return ir::real_text(value); }
std::string literal(bool value) { return value ? "true" : "false"; }

std::string literal(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    char escape[8];
    if (c == '"' || c == '\\') {
      (text += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      std::snprintf(escape, sizeof escape, "\\u%04X", static_cast<unsigned>(c));
      text += escape;
    } else {
      text += c;
    }
  }
  return text + '"';
}

/// "key = value" items, written one a line in a table or side by side in braces.
class Items {
 public:
  template <typename T>
  Items& add(const char* key, const T& value) {
    items_.emplace_back(key, literal(value));
    return *this;
  }
  template <typename T>
  Items& add_if(bool wanted, const char* key, const T& value) {
    return wanted ? add(key, value) : *this;
  }
  Items& add_text(const char* key, std::string text) {
    items_.emplace_back(key, std::move(text));
    return *this;
  }
  Items& append(const Items& more) {
    items_.insert(items_.end(), more.items_.begin(), more.items_.end());
    return *this;
  }

  std::string in_braces() const {
    std::string text = "{ ";
    for (const auto& [key, value] : items_) text += (text.size() == 2 ? "" : ", ") + key + " = " + value;
    return text + " }";
  }

  std::string table(const std::string& header) const {
    if (items_.empty()) return {};
    std::string text = "\n[" + header + "]\n";
    for (const auto& [key, value] : items_) text += key + " = " + value + "\n";
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> items_;
};

// -- settings of nodes
// -------------------------------------------------------------------------------------------

Items head_items(const AttentionSettings& attention) {
  return Items()
      .add("heads", attention.heads)
      .add("kv_heads", attention.kv_heads)
      .add("head_dim", attention.head_dim);
}

/// `defaults`: what holds where nothing is written.
Items attention_items(const AttentionSettings& attention, const AttentionSettings& defaults = {}) {
  return Items()
      .add("qkv_bias", attention.qkv_bias)
      .add("o_bias", attention.o_bias)
      .add("scale", attention.scale)
      .add("dropout", attention.dropout)
      .add_if(attention.window != defaults.window, "window", attention.window)
      .add_if(attention.window_after != defaults.window_after, "window_after", attention.window_after)
      .add_if(attention.prefix != defaults.prefix, "prefix", attention.prefix);
}

/// What [ffn.moe] says; experts = 0 alone where there is none.
std::string moe_text(const MoeSettings& moe) {
  Items items;
  items.add("experts", moe.experts);
  if (moe.experts == 0) return items.in_braces();
  return items.add("top_k", moe.top_k)
      .add("renormalize", moe.renormalize)
      .add("aux_loss", moe.aux_loss)
      .add("capacity", moe.capacity)
      .in_braces();
}

/// `defaults`: of the tables, where a mixture may have to be taken back.
Items ffn_items(const FfnSettings& ffn, const FfnSettings& defaults) {
  Items items;
  items.add("activation", ffn.activation).add("bias", ffn.bias).add("dropout", ffn.dropout);
  if (ffn.moe.experts > 0 || defaults.moe.experts > 0) items.add_text("moe", moe_text(ffn.moe));
  return items;
}

Items norm_items(const NormSettings& norm) {
  return Items().add("type", norm.type).add("eps", norm.eps).add("bias", norm.bias);
}

Items residual_items(const ResidualSettings& residual) {
  Items items;
  items.add("scale", residual.scale).add("dropout", residual.dropout);
  if (residual.gamma) items.add("gamma", *residual.gamma);
  return items;
}

std::string node_text(const BlockNode& node, const LayerSettings& defaults) {
  std::string inputs;
  for (const std::string& input : node.inputs) inputs += (inputs.empty() ? "" : ", ") + literal(input);
  if (node.inputs.size() != 1) inputs = "[" + inputs + "]";
  Items items;
  items.add("id", node.id).add("op", node.op).add_text("in", inputs);
  if (node.op == "attention") {
    const AttentionSettings& usual = node.memory ? node.attention : defaults.attention;
    items.append(head_items(node.attention)).append(attention_items(node.attention, usual));
    items.add_if(node.memory, "source", std::string("memory"));
  } else if (node.op == "ffn") {
    items.add("d_ff", node.ffn.d_ff).append(ffn_items(node.ffn, defaults.ffn));
  } else if (node.op == "norm") {
    items.append(norm_items(node.norm));
  } else if (node.op == "residual") {
    items.append(residual_items(node.residual));
  } else if (node.op == "linear") {
    items.add("out", node.out).add("bias", node.bias);
  } else if (node.op == "activation") {
    items.add("kind", node.kind);
  }
  return "  " + items.in_braces() + ",\n";
}

/// What stands below [block.NAME].
std::string block_text(const Layer& layer, const LayerSettings& defaults) {
  const std::string shared = layer.shared ? "shared = true\n" : "";
  if (layer.written_out) {
    std::string text = shared + "nodes = [\n";
    for (const BlockNode& node : layer.nodes) text += node_text(node, defaults);
    return text + "]\n";
  }
  const LayerSettings& s = layer.settings;
  const Items attention = head_items(s.attention).append(attention_items(s.attention, defaults.attention));
  const Items ffn = Items().add("d_ff", s.ffn.d_ff).append(ffn_items(s.ffn, defaults.ffn));
  const Items norm = norm_items(s.norm).add("placement", s.norm.placement);
  return shared + "attention = " + attention.in_braces() + "\nffn = " + ffn.in_braces() +
         "\nnorm = " + norm.in_braces() + "\nresidual = " + residual_items(s.residual).in_braces() + "\n";
}

// -- blocks and patterns
// -----------------------------------------------------------------------------------------

/// Gives equal layers one name. Layers as the tables have them need no block, unless others of their stack
/// do.
class Blocks {
 public:
  explicit Blocks(const Description& d) : defaults_(d.defaults) {
    for (const std::vector<Layer>* layers : {&d.layers, &d.encoder_layers, &d.decoder_layers})
      for (const Layer& layer : *layers)  // their names are part of parameters' names
        if (layer.shared && !taken(layer.block)) blocks_.emplace_back(layer.block, block_text(layer, defaults_));
  }

  /// The pattern of a stack as TOML; "" where every layer is the ordinary one.
  std::string pattern(const std::vector<Layer>& layers) {
    const bool ordinary =
        std::all_of(layers.begin(), layers.end(), [&](const Layer& l) { return is_ordinary(l); });
    if (ordinary) return {};
    std::vector<std::string> names;
    for (size_t i = 0; i < layers.size(); ++i) names.push_back(name_of(layers[i], i));
    names.resize(period(names));
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + literal(name);
    return "[" + text + "]";
  }

  std::string tables() const {
    std::string text;
    for (const auto& [name, body] : blocks_) text += "\n[block." + name + "]\n" + body;
    return text;
  }

 private:
  bool is_ordinary(const Layer& layer) const {
    return !layer.written_out && !layer.shared && layer.settings == defaults_;
  }

  const std::string& name_of(const Layer& layer, size_t index) {
    const std::string body = is_ordinary(layer) ? "" : block_text(layer, defaults_);
    for (const auto& [name, text] : blocks_)
      if (text == body && (!layer.shared || name == layer.block)) return name;
    std::string name = is_ordinary(layer) ? "ordinary" : layer.block.empty() ? "layer" : layer.block;
    if (name == "layer" || taken(name)) name += "_" + std::to_string(index);
    while (taken(name)) name += "_";
    return blocks_.emplace_back(name, body).first;
  }

  bool taken(const std::string& name) const {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [&](const auto& block) { return block.first == name; });
  }

  static size_t period(const std::vector<std::string>& names) {
    for (size_t length = 1; length < names.size(); ++length) {
      bool repeats = true;
      for (size_t i = length; repeats && i < names.size(); ++i) repeats = names[i] == names[i - length];
      if (repeats) return length;
    }
    return names.size();
  }

  const LayerSettings& defaults_;
  std::vector<std::pair<std::string, std::string>> blocks_;  // name, body
};

// -- tables
// ------------------------------------------------------------------------------------------------------

std::string model_table(const Description& d, Blocks& blocks) {
  const ModelSettings& model = d.model;
  Items items;
  items.add("name", model.name).add("kind", model.kind).add("d_model", model.d_model);
  if (model.is_encoder_decoder()) {
    items.add("encoder_layers", static_cast<int64_t>(d.encoder_layers.size()));
    items.add("decoder_layers", static_cast<int64_t>(d.decoder_layers.size()));
  } else {
    items.add("layers", static_cast<int64_t>(d.layers.size()));
  }
  items.append(head_items(d.defaults.attention))
      .add("d_ff", d.defaults.ffn.d_ff)
      .add("vocab", model.vocab)
      .add_if(model.has_encoder_input, "src_vocab", model.src_vocab)
      .add_if(model.max_seq > 0 && !d.has_patches(), "max_seq", model.max_seq);
  const std::pair<const char*, const std::vector<Layer>*> stacks[] = {
      {"pattern", &d.layers}, {"encoder_pattern", &d.encoder_layers}, {"decoder_pattern", &d.decoder_layers}};
  for (const auto& [key, layers] : stacks)
    if (const std::string pattern = blocks.pattern(*layers); !pattern.empty()) items.add_text(key, pattern);
  return items.table("model");
}

std::string patches_text(const PatchSettings& patches) {
  return Items()
      .add("size", patches.size)
      .add_text("image", "[" + literal(patches.channels) + ", " + literal(patches.height) + ", " +
                             literal(patches.width) + "]")
      .in_braces();
}

std::string embedding_table(const Description& d) {
  const bool has_table = d.model.vocab > 0 || d.model.src_vocab > 0;
  Items items;
  if (d.has_patches()) {
    items.add_text("patches", patches_text(d.embedding.patches));
    items.add("class_token", d.embedding.patches.class_token);
  }
  return items.add_if(!d.has_named_heads() && d.heads.front().reads_table(), "tie", d.embedding.tie)
      .add_if(d.model.has_encoder_input, "tie_sides", d.embedding.tie_sides)
      .add_if(has_table && d.embedding.dim != d.model.d_model, "dim", d.embedding.dim)
      .add_if(has_table, "scale", std::string(d.embedding.scale ? "sqrt_d" : "none"))
      .add("norm", d.embedding.norm)
      .add_if(d.model.kind == "encoder", "types", d.embedding.types)
      .add("dropout", d.embedding.dropout)
      .table("embedding");
}

std::string position_table(const Description& d) {
  const bool rope = d.position.type == "rope";
  return Items()
      .add("type", d.position.type)
      .add_if(rope, "rope_theta", d.position.rope_theta)
      .add_if(rope, "rope_style", d.position.rope_style)
      .table("position");
}

std::string norm_table(const Description& d) {
  return norm_items(d.defaults.norm)
      .add("placement", d.defaults.norm.placement)
      .add_if(d.final_norm != "auto", "final", d.final_norm == "yes")
      .table("norm");
}

Items head_items(const HeadSettings& head) {
  const bool regression = head.type == "regression";
  return Items()
      .add("type", head.type)
      .add_if(head.type != "none", "bias", head.bias)
      .add_if(head.classes > 0, "classes", head.classes)
      .add_if(head.type == "classifier" || regression, "pool", head.pool.empty() ? std::string("none") : head.pool)
      .add_if(head.type != "none", "loss", head.loss);
}

Items loss_items(const HeadSettings& head) {
  if (head.loss != "cross_entropy") return {};
  return Items().add("ignore_index", head.ignore_index).add("label_smoothing", head.label_smoothing);
}

/// [head] and [loss], or a [head.NAME] for each.
std::string head_tables(const Description& d) {
  if (!d.has_named_heads()) {
    const HeadSettings& head = d.heads.front();
    const std::string loss = loss_items(head).table("loss");
    return head_items(head).table("head") + loss;
  }
  std::string text;
  for (const HeadSettings& head : d.heads) {
    const std::string stack = !d.model.is_encoder_decoder() ? "layers."
                              : head.source                 ? "encoder.layers."
                                                            : "decoder.layers.";
    text += head_items(head)
                .add_if(head.from >= 0, "from", stack + std::to_string(head.from))
                .add_if(head.reads_table(), "tie", head.tie)
                .add_if(head.has_loss(), "loss_weight", head.loss_weight)
                .append(loss_items(head))
                .table("head." + head.name);
  }
  return text;
}

Items recompute_items(const RecomputeSettings& recompute) {
  Items items;
  if (recompute.mode != "none") items.add("recompute", recompute.mode);
  if (recompute.mode == "auto") {
    const std::string bytes = std::to_string(recompute.bytes) + "B";
    items.add_text(
        "budget",
        Items().add("bytes", bytes).add("batch", recompute.batch).add("seq", recompute.seq).in_braces());
  }
  return items;
}

std::string texts_literal(const std::vector<NamePattern>& texts) {
  std::string list;
  for (const NamePattern& text : texts) list += (list.empty() ? "" : ", ") + literal(text.text);
  return "[" + list + "]";
}

Items freeze_items(const std::vector<NamePattern>& freeze) {
  Items items;
  if (!freeze.empty()) items.add_text("freeze", texts_literal(freeze));
  return items;
}

Items lora_items(const LoraSettings& lora) {
  Items items;
  if (lora.rank == 0) return items;
  return items.add_text("lora", Items()
                                    .add("rank", lora.rank)
                                    .add("alpha", lora.alpha)
                                    .add_text("targets", texts_literal(lora.targets))
                                    .in_braces());
}

std::string train_table(const Description& d) {
  const bool own_deviations = d.train.init == "xavier" || d.train.init == "torch";
  return freeze_items(d.train.freeze)
      .append(recompute_items(d.train.recompute))
      .add("init", d.train.init)
      .add_if(!own_deviations, "init_std", d.train.init_std)
      .add_if(d.train.zero_init, "zero_init", true)
      .append(lora_items(d.train.lora))
      .table("train");
}

std::string debug_table(const DebugSettings& debug) {
  Items items;
  if (!debug.taps.empty()) items.add_text("taps", texts_literal(debug.taps));
  if (!debug.edits.empty()) items.add_text("edits", texts_literal(debug.edits));
  return items.table("debug");
}

std::string inputs_table(const InputSettings& inputs) {
  return Items()
      .add("mask", inputs.mask)
      .add("lengths", inputs.lengths)
      .add_if(inputs.positions, "positions", true)
      .add_if(inputs.documents, "documents", true)
      .add_if(inputs.prefix, "prefix", true)
      .add_if(inputs.weights, "weights", true)
      .table("inputs");
}

std::string shapes_table(const Description& d) {
  return Items()
      .add_if(d.shapes.batch > 0, "batch", d.shapes.batch)
      .add_if(d.shapes.seq > 0 && !d.has_patches(), "seq", d.shapes.seq)
      .add_if(d.shapes.src_seq > 0, "src_seq", d.shapes.src_seq)
      .table("shapes");
}

std::string run_table(const RunSettings& run) {
  if (!run.written) return {};
  return Items()
      .add("task", run.task)
      .add_if(!run.data.empty(), "data", run.data)
      .add("steps", run.steps)
      .add("epochs", run.epochs)
      .add("examples", run.examples)
      .add("length", run.length)
      .add("batch", run.batch)
      .add("seq", run.seq)
      .add("accumulate", run.accumulate)
      .add("lr", run.lr)
      .add("min_lr", run.min_lr)
      .add("warmup", run.warmup)
      .add("schedule", run.schedule)
      .add_text("betas", "[" + literal(run.beta1) + ", " + literal(run.beta2) + "]")
      .add("eps", run.eps)
      .add("weight_decay", run.weight_decay)
      .add("clip", run.clip)
      .add("seed", run.seed)
      .add("threads", run.threads)
      .add("validation", run.validation)
      .add("report", run.report)
      .add("sample", run.sample)
      .add("prompt", run.prompt)
      .add("temperature", run.temperature)
      .add("top_k", run.top_k)
      .table("run");
}

}  // namespace

std::string resolved_toml(const Description& d) {
  Blocks blocks(d);
  const std::string model = model_table(d, blocks);  // names the blocks that are written last
  return "schema = 1\n" + model + embedding_table(d) + position_table(d) + norm_table(d) +
         attention_items(d.defaults.attention).table("attention") + ffn_items(d.defaults.ffn, d.defaults.ffn).table("ffn") +
         residual_items(d.defaults.residual).table("residual") + head_tables(d) +
         train_table(d) + inputs_table(d.inputs) + shapes_table(d) + run_table(d.run) + debug_table(d.debug) + blocks.tables();
}

}  // namespace tfc::frontend
