#include "frontend/build_blocks.h"

#include <cmath>

#include "frontend/model_facts.h"
#include "frontend/resolved_toml.h"

namespace tfc::frontend {
namespace {

using ir::Dim;
using ir::DType;
using ir::OpKind;
using ir::Symbol;
using ir::Type;
using ir::Value;

/// One stack of layers and what they see.
struct StackInputs {
  std::string prefix;  // "", "encoder.", "decoder."
  Dim tokens = Symbol::T;
  bool causal = false;
  Value mask, memory, memory_mask;  // absent ones invalid
};

class BlockBuilder {
 public:
  BlockBuilder(const Description& description, DType real) : d_(description), real_(real) {
    graph_.real = real;
  }

  ir::Module run() {
    d_.model.is_encoder_decoder() ? two_stacks() : one_stack();
    ir::Module module;
    module.name = d_.model.name;
    module.phase = ir::Phase::Blocks;
    module.real = real_;
    module.facts = model_facts(d_);
    module.description = resolved_toml(d_);
    for (const NamePattern& freeze : d_.train.freeze) module.freezes.push_back({freeze.text, freeze.place});
    for (const NamePattern& tap : d_.debug.taps) module.taps.push_back({tap.text, tap.place});
    for (const NamePattern& edit : d_.debug.edits) module.edits.push_back({edit.text, edit.place});
    const RecomputeSettings& again = d_.train.recompute;
    const LoraSettings& lora = d_.train.lora;
    if (lora.rank > 0) {
      module.lora = {lora.rank, lora.alpha, {}, lora.place};
      for (const NamePattern& target : lora.targets)
        module.lora.targets.push_back({target.text, target.place});
    }
    module.recompute = {again.mode, again.bytes, again.batch, again.seq, again.place};
    ir::Entry entry;
    entry.name = "model";
    entry.graph = std::move(graph_);
    module.entries.push_back(std::move(entry));
    return module;
  }

 private:
  // -- nodes
  // ---------------------------------------------------------------------------------------------------

  Value add(OpKind op, const std::string& name, const ir::Place& place, std::vector<Type> results,
            const std::vector<Value>& operands, ir::Attributes attributes) {
    ir::Node node;
    node.op = op;
    node.name = name;
    node.place = place;
    node.results = std::move(results);
    node.attributes = std::move(attributes);
    return {graph_.add_node(std::move(node), operands), 0};
  }

  Value input(const std::string& name, DType dtype, ir::Shape shape) {
    return add(OpKind::Input, name, d_.places.model, {{dtype, std::move(shape)}}, {}, {{"name", name}});
  }

  Value mask_input(const std::string& name, const Dim& tokens) {
    return d_.has_masks() ? input(name, DType::U8, {Symbol::B, tokens}) : Value{};
  }

  /// Inputs that no block has as an operand (ir/blocks.h).
  void token_inputs(const std::string& side, Symbol tokens) {
    if (d_.inputs.positions) input(side + "positions", DType::I32, {Symbol::B, tokens});
    if (d_.inputs.documents) input(side + "documents", DType::I32, {Symbol::B, tokens});
    if (d_.inputs.prefix && side.empty()) input("prefix", DType::I32, {Symbol::B});
  }

  Value ids_or_floats(const std::string& ids, const std::string& floats, int64_t vocab,
                      const Dim& tokens) {
    return vocab > 0 ? input(ids, DType::I32, {Symbol::B, tokens})
                     : input(floats, real_, hidden(tokens).shape);
  }

  Type hidden(const Dim& tokens, int64_t width = 0) const {
    return {real_, {Symbol::B, tokens, width > 0 ? width : d_.model.d_model}};
  }

  Value image() {
    const PatchSettings& p = d_.embedding.patches;
    return input("image", real_, {Symbol::B, p.channels, p.height, p.width});
  }

  /// T, or the number that patches make of it.
  Dim own_tokens() const { return d_.has_patches() ? Dim(d_.embedding.patches.tokens()) : Dim(Symbol::T); }

  // -- the model
  // -----------------------------------------------------------------------------------------------

  void one_stack() {
    const Value ids = d_.has_patches() ? image() : ids_or_floats("tokens", "x", d_.model.vocab, own_tokens());
    token_inputs("", Symbol::T);
    const Value types = d_.embedding.types > 0 ? input("types", DType::I32, {Symbol::B, Symbol::T}) : Value{};
    StackInputs inputs;
    inputs.tokens = own_tokens();
    inputs.causal = d_.model.kind == "decoder";
    inputs.mask = mask_input("mask", Symbol::T);
    const Value x = embedding("embedding", ids, types, inputs.mask, "tok_emb.weight", "pos_emb.weight",
                              d_.model.vocab, own_tokens());
    const Value end = stack(x, d_.layers, inputs);
    heads({end, layer_outputs_, inputs.mask, "tok_emb.weight"}, {});
  }

  void two_stacks() {
    const bool apart = d_.model.has_encoder_input && !d_.embedding.tie_sides;
    StackInputs encoder, decoder;
    Value source = d_.model.has_memory_input ? input("memory", real_, hidden(Symbol::S).shape)
                                             : ids_or_floats("src", "src", d_.model.src_vocab, Symbol::S);
    const Value target = ids_or_floats("tgt", "tgt", d_.model.vocab, Symbol::T);
    token_inputs("src_", Symbol::S);
    token_inputs("", Symbol::T);
    encoder = {"encoder.", Symbol::S, false, mask_input("src_mask", Symbol::S), {}, {}};
    ReadStack below;
    if (d_.model.has_encoder_input) {
      source = embedding("encoder.embedding", source, {}, encoder.mask,
                         apart ? "src_emb.weight" : "tok_emb.weight",
                         apart ? "src_pos_emb.weight" : "pos_emb.weight", d_.model.src_vocab, Symbol::S);
      source = stack(source, d_.encoder_layers, encoder);
      below = {source, layer_outputs_, encoder.mask, apart ? "src_emb.weight" : "tok_emb.weight"};
    }
    decoder = {"decoder.", Symbol::T, true, mask_input("mask", Symbol::T), source, encoder.mask};
    const std::string table = apart ? "tgt_emb.weight" : "tok_emb.weight";
    const Value x = embedding("decoder.embedding", target, {}, decoder.mask, table,
                              apart ? "tgt_pos_emb.weight" : "pos_emb.weight", d_.model.vocab, Symbol::T);
    const Value end = stack(x, d_.decoder_layers, decoder);
    heads({end, layer_outputs_, decoder.mask, table}, below);
  }

  Value embedding(const std::string& name, Value ids, Value types, Value mask, const std::string& table,
                  const std::string& positions, int64_t vocab, const Dim& tokens) {
    const bool learned = d_.position.type == "learned";
    const NormSettings& norm = d_.defaults.norm;
    const double width = static_cast<double>(d_.model.d_model);
    ir::Attributes attributes{{"table", vocab > 0 ? table : std::string()},
                              {"vocab", vocab},
                              {"scale", d_.embedding.scale ? std::sqrt(width) : 1.0},
                              {"tokens", tokens},
                              {"position", d_.position.type},
                              {"pos_table", learned ? positions : std::string()},
                              {"max_seq", d_.model.max_seq},
                              {"types", d_.embedding.types},
                              {"dropout", d_.embedding.dropout},
                              {"norm", d_.embedding.norm},
                              {"norm.type", norm.type},
                              {"norm.eps", norm.eps},
                              {"norm.bias", norm.bias},
                              {"norm.prefix", std::string("emb_norm")}};
    if (d_.has_patches()) {
      attributes.set("patch", d_.embedding.patches.size);
      attributes.set("class_token", d_.embedding.patches.class_token);
    }
    if (d_.embedding.dim != d_.model.d_model) {  // "emb_proj", as "src_emb_proj" beside "src_pos_emb.weight"
      attributes.set("dim", d_.embedding.dim);
      attributes.set("projection", positions.substr(0, positions.find("pos_emb")) + "emb_proj");
    }
    return add(OpKind::BlockEmbedding, name, d_.places.embedding, {hidden(tokens)}, {ids, types, mask},
               std::move(attributes));
  }

  Value stack(Value x, const std::vector<Layer>& layers, const StackInputs& inputs) {
    const auto depth = static_cast<int64_t>(layers.size());
    layer_outputs_.clear();
    for (int64_t i = 0; i < depth; ++i) {
      const Layer& layer = layers[static_cast<size_t>(i)];
      const std::string name = inputs.prefix + "layers." + std::to_string(i);
      const std::string weights = layer.shared ? inputs.prefix + "blocks." + layer.block : name;
      x = layer.written_out ? written_out(x, layer, name, weights, inputs)
                            : ordinary(x, layer, name, weights, depth, inputs);
      layer_outputs_.push_back(x);
    }
    return final_norm(x, inputs, depth);
  }

  Value final_norm(Value x, const StackInputs& inputs, int64_t depth) {
    if (d_.final_norm == "no") return x;
    const std::string prefix = inputs.prefix + "final_norm";
    ir::Attributes attributes = norm_attributes(d_.defaults.norm);
    attributes.set("prefix", prefix);
    attributes.set("final", d_.final_norm);
    if (d_.final_norm == "auto") attributes.set("depth", depth);
    return add(OpKind::BlockNorm, prefix, d_.places.final_norm, {hidden(inputs.tokens)}, {x},
               std::move(attributes));
  }

  /// What heads may read of a stack.
  struct ReadStack {
    Value end;
    std::vector<Value> layers;
    Value mask;
    std::string table;
  };

  void heads(const ReadStack& own, const ReadStack& encoder) {
    const std::vector<ir::HeadFacts> facts = head_facts(d_);
    for (size_t i = 0; i < facts.size(); ++i) {
      const HeadSettings& settings = d_.heads[i];
      const ReadStack& stack = settings.source ? encoder : own;
      const Value x = settings.from < 0 ? stack.end : stack.layers[static_cast<size_t>(settings.from)];
      const Value output = head(settings, facts[i], x, stack.mask, stack.table);
      graph_.outputs.push_back({facts[i].named("output"), output});
      if (settings.has_loss()) loss(settings, facts[i], output);
    }
  }

  Value head(const HeadSettings& head, const ir::HeadFacts& facts, Value x, Value mask, const std::string& table) {
    const NormSettings& norm = d_.defaults.norm;
    ir::Attributes attributes{{"type", head.type},     {"prefix", facts.named("head")},
                              {"out", facts.out},      {"bias", head.bias},
                              {"tied", head.tie ? table : std::string()}, {"pool", head.pool}};
    if (head.type == "mlm") add_all(attributes, "norm.", norm_attributes(norm));
    return add(OpKind::BlockHead, facts.named("head"), head.place, {{real_, rows(facts, facts.out)}}, {x, mask},
               std::move(attributes));
  }

  void loss(const HeadSettings& head, const ir::HeadFacts& facts, Value output) {
    const bool classes = facts.has_class_targets();
    const Value targets = input(facts.named("targets"), classes ? DType::I32 : real_, rows(facts, classes ? 0 : facts.out));
    const Value weights = d_.inputs.weights ? input(facts.named("weights"), real_, rows(facts, 0)) : Value{};
    const Type scalar{DType::F64, {}};
    ir::Attributes attributes{{"ignore_index", head.ignore_index}, {"smoothing", head.label_smoothing}};
    if (!classes) attributes.set("kind", head.loss);
    if (head.loss_weight != 1) attributes.set("share", head.loss_weight);
    const Value loss = add(OpKind::BlockLoss, facts.named("loss"), head.loss_place, {scalar, scalar},
                           {output, targets, weights}, std::move(attributes));
    graph_.outputs.push_back({facts.named("loss.sum"), loss});
    graph_.outputs.push_back({facts.named("loss.count"), {loss.node, 1}});
  }

  /// A head's rows, of `width` elements; 0: one number each.
  ir::Shape rows(const ir::HeadFacts& facts, int64_t width) const {
    ir::Shape shape = {Symbol::B};
    if (facts.per_token) shape.push_back(facts.source ? Dim(Symbol::S) : own_tokens());
    if (width > 0) shape.push_back(width);
    return shape;
  }

  // -- layers
  // --------------------------------------------------------------------------------------------------

  Value ordinary(Value x, const Layer& layer, const std::string& name, const std::string& weights,
                 int64_t depth, const StackInputs& inputs) {
    ir::Attributes attributes{{"prefix", name},
                              {"cross", inputs.memory.valid()},
                              {"placement", layer.settings.norm.placement},
                              {"depth", depth}};
    add_all(attributes, "attention.", attention_attributes(layer.settings.attention, inputs.causal, true));
    add_all(attributes, "ffn.", ffn_attributes(layer.settings.ffn));
    add_all(attributes, "norm.", norm_attributes(layer.settings.norm));
    add_all(attributes, "residual.", residual_attributes(layer.settings.residual));
    if (layer.shared) attributes.set("weights", weights);
    return add(OpKind::BlockLayer, name, layer.place, {hidden(inputs.tokens)},
               {x, inputs.memory, inputs.mask, inputs.memory_mask}, std::move(attributes));
  }

  Value written_out(Value x, const Layer& layer, const std::string& prefix, const std::string& weights,
                    const StackInputs& inputs) {
    std::vector<std::pair<std::string, Value>> values{{"x", x}};
    const auto find = [&](const std::string& id) {
      for (const auto& [name, value] : values)
        if (name == id) return value;
      return Value{};
    };
    for (const BlockNode& node : layer.nodes) {
      std::vector<Value> operands;
      for (const std::string& id : node.inputs) operands.push_back(find(id));
      values.emplace_back(node.id, block_node(node, prefix + "." + node.id, weights + "." + node.id,
                                              std::move(operands), inputs));
    }
    return values.back().second;
  }

  Value block_node(const BlockNode& node, const std::string& name, const std::string& weights,
                   std::vector<Value> operands, const StackInputs& inputs) {
    OpKind op = OpKind::BlockMultiply;
    ir::Attributes attributes;
    if (node.op == "attention") {
      op = OpKind::BlockAttention;
      operands.push_back(node.memory ? inputs.memory : Value{});
      operands.push_back(node.memory ? inputs.memory_mask : inputs.mask);
      attributes = attention_attributes(node.attention, inputs.causal && !node.memory, !node.memory);
    } else if (node.op == "ffn") {
      op = OpKind::BlockFfn;
      if (node.ffn.moe.experts > 0) operands.push_back(inputs.mask);
      attributes = ffn_attributes(node.ffn);
    } else if (node.op == "norm") {
      op = OpKind::BlockNorm;
      attributes = norm_attributes(node.norm);
      attributes.set("final", std::string());
    } else if (node.op == "residual") {
      op = OpKind::BlockResidual;
      attributes = residual_attributes(node.residual);
    } else if (node.op == "linear") {
      op = OpKind::BlockLinear;
      attributes = {{"out", node.out}, {"bias", node.bias}};
    } else if (node.op == "activation") {
      op = OpKind::BlockActivation;
      attributes.set("kind", node.kind);
    }
    const bool has_parameters =
        node.op == "attention" || node.op == "ffn" || node.op == "norm" || node.op == "linear";
    if (has_parameters || node.residual.gamma) attributes.set("prefix", weights);
    return add(op, name, node.place, {hidden(inputs.tokens, node.width)}, operands, std::move(attributes));
  }

  // -- attributes
  // ----------------------------------------------------------------------------------------------

  static void add_all(ir::Attributes& to, const std::string& prefix, const ir::Attributes& from) {
    for (const auto& [key, value] : from.entries()) to.set(prefix + key, value);
  }

  ir::Attributes attention_attributes(const AttentionSettings& attention, bool causal, bool self) const {
    const bool rope = self && d_.position.type == "rope";
    ir::Attributes attributes = {{"heads", attention.heads},
                                 {"kv_heads", attention.kv_heads},
                                 {"head_dim", attention.head_dim},
                                 {"scale", attention.scale},
                                 {"causal", causal},
                                 {"qkv_bias", attention.qkv_bias},
                                 {"o_bias", attention.o_bias},
                                 {"dropout", attention.dropout},
                                 {"rope", rope ? d_.position.rope_style : std::string()},
                                 {"rope_theta", d_.position.rope_theta}};
    if (self && d_.position.type == "alibi") attributes.set("alibi", true);
    if (attention.window > 0) attributes.set("window", attention.window);
    if (attention.window_after > 0 && !causal) attributes.set("after", attention.window_after);
    if (attention.prefix && causal) attributes.set("prefix_lm", true);
    return attributes;
  }

  static ir::Attributes ffn_attributes(const FfnSettings& ffn) {
    ir::Attributes attributes{{"d_ff", ffn.d_ff}, {"activation", ffn.activation}, {"bias", ffn.bias}, {"dropout", ffn.dropout}};
    if (ffn.moe.experts == 0) return attributes;
    attributes.set("experts", ffn.moe.experts);
    attributes.set("top_k", ffn.moe.top_k);
    attributes.set("renormalize", ffn.moe.renormalize);
    attributes.set("aux_loss", ffn.moe.aux_loss);
    attributes.set("capacity", ffn.moe.capacity);
    return attributes;
  }

  static ir::Attributes norm_attributes(const NormSettings& norm) {
    return {{"type", norm.type}, {"eps", norm.eps}, {"bias", norm.bias}};
  }

  static ir::Attributes residual_attributes(const ResidualSettings& residual) {
    ir::Attributes attributes{{"scale", residual.scale}, {"dropout", residual.dropout}};
    if (residual.gamma) attributes.set("gamma", *residual.gamma);
    return attributes;
  }

  const Description& d_;
  const DType real_;
  ir::Graph graph_;
  std::vector<Value> layer_outputs_;  // of the stack built last
};

}  // namespace

ir::Module build_blocks(const Description& description, ir::DType real) {
  return BlockBuilder(description, real).run();
}

}  // namespace tfc::frontend
