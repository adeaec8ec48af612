#include "passes/models.h"

#include <gtest/gtest.h>

namespace tfc::passes::testing {

using ir::Dim;
using ir::DType;
using ir::Graph;
using ir::Module;
using ir::Node;
using ir::OpKind;
using ir::Symbol;
using ir::Type;
using ir::Value;

namespace {

struct Builder {
  const Model& model;
  Module module = {};
  Graph graph = {};

  Value node(OpKind op, const std::string& name, std::vector<Type> results,
             const std::vector<Value>& operands, ir::Attributes attributes) {
    Node node;
    node.op = op;
    node.name = name;
    node.results = std::move(results);
    node.attributes = std::move(attributes);
    return {graph.add_node(std::move(node), operands), 0};
  }

  Value input(const std::string& name, DType dtype, std::vector<Dim> shape) {
    return node(OpKind::Input, name, {{dtype, std::move(shape)}}, {}, {{"name", name}});
  }

  Type hidden(Symbol tokens) const { return {DType::F64, {Symbol::B, tokens, model.d_model}}; }

  Value tokens_or_floats(const std::string& ids, const std::string& floats, Symbol tokens) {
    if (model.vocab > 0) return input(ids, DType::I32, {Symbol::B, tokens});
    return input(floats, DType::F64, {Symbol::B, tokens, model.d_model});
  }

  Value embedding(const std::string& name, Value ids, Value types, Value mask, Symbol tokens) {
    const bool rows = model.vocab > 0;
    return node(OpKind::BlockEmbedding, name, {hidden(tokens)}, {ids, types, mask},
                {{"table", std::string(rows ? "tok_emb.weight" : "")},
                 {"vocab", model.vocab},
                 {"scale", model.embedding_scale},
                 {"tokens", Dim(tokens)},
                 {"position", model.position},
                 {"pos_table", std::string(model.position == "learned" ? "pos_emb.weight" : "")},
                 {"max_seq", model.max_seq},
                 {"types", model.types},
                 {"norm", model.embedding_norm},
                 {"norm.type", model.norm},
                 {"norm.eps", 1e-5},
                 {"norm.bias", model.bias},
                 {"norm.prefix", std::string("emb_norm")}});
  }

  Value layer(const std::string& prefix, Value x, Value memory, Value mask, Value memory_mask, Symbol tokens,
              int64_t depth, bool causal) {
    ir::Attributes attributes = experts();
    const ir::Attributes own = layer_attributes(prefix, memory.valid(), depth, causal);
    for (const auto& [key, value] : own.entries())
      attributes.set(key, value);
    if (model.gamma != 0) attributes.set("residual.gamma", model.gamma);
    const std::string side = prefix.substr(0, prefix.find("layers."));
    if (!model.shared.empty()) attributes.set("weights", side + model.shared);
    return node(OpKind::BlockLayer, prefix, {hidden(tokens)}, {x, memory, mask, memory_mask},
                std::move(attributes));
  }

  ir::Attributes experts() const {
    if (model.experts == 0) return {};
    return {{"ffn.experts", model.experts},
            {"ffn.top_k", int64_t{2}},
            {"ffn.renormalize", true},
            {"ffn.aux_loss", 0.3},
            {"ffn.capacity", 0.0}};
  }

  ir::Attributes layer_attributes(const std::string& prefix, bool cross, int64_t depth, bool causal) const {
    const bool rope = model.position == "rope";
    return {{"prefix", prefix},
            {"cross", cross},
            {"placement", model.placement},
            {"depth", depth},
            {"attention.heads", model.heads},
            {"attention.kv_heads", model.kv_heads},
            {"attention.head_dim", model.head_dim},
            {"attention.scale", 0.7},
            {"attention.causal", causal},
            {"attention.qkv_bias", model.bias},
            {"attention.o_bias", model.bias},
            {"attention.rope", std::string(rope ? model.rope_style : "")},
            {"attention.rope_theta", 100.0},
            {"ffn.d_ff", model.d_ff},
            {"ffn.activation", model.activation},
            {"ffn.bias", model.bias},
            {"norm.type", model.norm},
            {"norm.eps", 1e-5},
            {"norm.bias", model.bias},
            {"residual.scale", model.residual_scale}};
  }

  Value final_norm(const std::string& prefix, Value x, Symbol tokens, int64_t depth) {
    if (model.placement == "post") return x;
    const bool undecided = model.placement == "auto";
    ir::Attributes attributes{{"prefix", prefix},
                              {"type", model.norm},
                              {"eps", 1e-5},
                              {"bias", model.bias},
                              {"final", std::string(undecided ? "auto" : "yes")}};
    if (undecided) attributes.set("depth", depth);
    return node(OpKind::BlockNorm, prefix, {hidden(tokens)}, {x}, std::move(attributes));
  }

  Value stack(const std::string& prefix, const std::string& norm, Value x, Value memory, Value mask,
              Value memory_mask, Symbol tokens, bool causal) {
    for (int64_t i = 0; i < model.layers; ++i) {
      x = layer(prefix + "layers." + std::to_string(i), x, memory, mask, memory_mask, tokens, model.layers,
                causal);
    }
    return final_norm(norm, x, tokens, model.layers);
  }

  void head_and_loss(Value x, Value mask) {
    const bool lm = model.head == "lm", classifier = model.head == "classifier";
    Type result = hidden(Symbol::T);
    if (lm) result.shape[2] = model.vocab;
    if (classifier) result.shape = {Symbol::B, model.classes};
    const Value out = node(OpKind::BlockHead, "head.block", {result}, {x, mask},
                           {{"type", model.head},
                            {"prefix", std::string("head")},
                            {"out", lm ? model.vocab : model.classes},
                            {"bias", model.head_bias},
                            {"tied", std::string(lm && model.tie ? "tok_emb.weight" : "")},
                            {"pool", classifier ? model.pool : std::string()}});
    graph.outputs.push_back({"output", out});
    if (!lm && !classifier) return;
    std::vector<Dim> shape = {Symbol::B};
    if (lm) shape.emplace_back(Symbol::T);
    const Value targets = input("targets", DType::I32, shape);
    const Type scalar{DType::F64, {}};
    const Value loss = node(OpKind::BlockLoss, "loss", {scalar, scalar}, {out, targets},
                            {{"ignore_index", int64_t{-100}}, {"smoothing", model.smoothing}});
    graph.outputs.push_back({"loss.sum", loss});
    graph.outputs.push_back({"loss.count", {loss.node, 1}});
  }

  void one_stack() {
    const Value ids = tokens_or_floats("tokens", "x", Symbol::T);
    const Value types = model.types > 0 ? input("types", DType::I32, {Symbol::B, Symbol::T}) : Value{};
    const Value mask = model.mask ? input("mask", DType::U8, {Symbol::B, Symbol::T}) : Value{};
    const Value x = embedding("embedding", ids, types, mask, Symbol::T);
    head_and_loss(stack("", "final_norm", x, {}, mask, {}, Symbol::T, model.kind == "decoder"), mask);
  }

  void two_stacks() {
    Value memory = model.memory_input ? input("memory", DType::F64, {Symbol::B, Symbol::S, model.d_model})
                                      : tokens_or_floats("src", "src", Symbol::S);
    const Value ids = tokens_or_floats("tgt", "tgt", Symbol::T);
    const Value mask = model.mask ? input("mask", DType::U8, {Symbol::B, Symbol::T}) : Value{};
    const Value src_mask = model.mask ? input("src_mask", DType::U8, {Symbol::B, Symbol::S}) : Value{};
    if (!model.memory_input) {
      const Value src = embedding("encoder.embedding", memory, {}, src_mask, Symbol::S);
      memory = stack("encoder.", "encoder.final_norm", src, {}, src_mask, {}, Symbol::S, false);
    }
    const Value x = embedding("decoder.embedding", ids, {}, mask, Symbol::T);
    head_and_loss(stack("decoder.", "decoder.final_norm", x, memory, mask, src_mask, Symbol::T, true), mask);
  }

  Module finish() {
    module.name = "model";
    module.real = graph.real = DType::F64;
    module.facts = {{"kind", model.kind},
                    {"d_model", model.d_model},
                    {"vocab", model.vocab},
                    {"src_vocab", model.vocab},
                    {"types", model.types},
                    {"max_seq", model.max_seq},
                    {"head", model.head},
                    {"classes", model.classes},
                    {"out_width", model.vocab},
                    {"mask", model.mask},
                    {"lengths", false},
                    {"memory_input", model.memory_input},
                    {"ignore_index", int64_t{-100}},
                    {"init", model.init},
                    {"init_std", 0.3},
                    {"batch", int64_t{0}},
                    {"seq", int64_t{0}},
                    {"src_seq", int64_t{0}}};
    if (model.kind == "encoder-decoder") {
      module.facts.set("encoder_layers", model.memory_input ? int64_t{0} : model.layers);
      module.facts.set("decoder_layers", model.layers);
      two_stacks();
    } else {
      module.facts.set("layers", model.layers);
      one_stack();
    }
    module.entries.push_back({"model", std::move(graph), {}});
    return std::move(module);
  }
};

}  // namespace

Model llama_like(bool tie) {
  return {.norm = "rmsnorm",
          .activation = "swiglu",
          .position = "rope",
          .d_model = 8,
          .heads = 4,
          .kv_heads = 2,
          .tie = tie,
          .mask = true,
          .bias = false};
}

Module blocks(const Model& model) { return Builder{model}.finish(); }

void run_to(Module& module, ir::Phase phase, const PassOptions& options) {
  ir::Diagnostics diagnostics;
  PassOptions checked = options;
  checked.verify_each = true;
  EXPECT_TRUE(run_pipeline(module, phase, checked, diagnostics)) << diagnostics.text();
  EXPECT_TRUE(ir::verify(module, diagnostics)) << diagnostics.text();
}

Module compiled(const Model& model, ir::Phase phase, const PassOptions& options) {
  Module module = blocks(model);
  run_to(module, phase, options);
  return module;
}

ir::Interpreter random_inputs(const Module& module, const ir::Entry& entry, const ir::Point& point,
                              unsigned seed) {
  ir::Interpreter interpreter(module, point);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (const ir::Parameter& parameter : module.parameters) {
    std::vector<double> elements(static_cast<size_t>(parameter.elements()));
    for (double& element : elements)
      element = (parameter.shape.size() == 1 ? 1.0 : 0.0) + 0.4 * normal(random);
    interpreter.write(ir::Space::Params, parameter.name, elements);
  }
  for (ir::NodeId id : entry.graph.nodes()) {
    const Node& input = entry.graph.node(id);
    if (input.op != OpKind::Input) continue;
    ir::Tensor tensor(input.results[0].dtype, ir::shape_at(input.results[0], point));
    std::mt19937_64 own(seed +
                        std::hash<std::string>()(input.name));  // the same whatever other inputs there are
    const int64_t ids = input.name == "types" ? module.facts.integer("types")
                        : module.facts.text("head") == "classifier" && input.name == "targets"
                            ? module.facts.integer("classes")
                            : std::max<int64_t>(module.facts.integer("vocab"), 1);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (tensor.dtype == DType::I32)
        tensor[i] = input.name == "offsets" ? 0.0 : static_cast<double>(own() % static_cast<uint64_t>(ids));
      if (tensor.dtype == DType::U8) tensor[i] = i % tensor.width() == 0 || own() % 3 != 0 ? 1.0 : 0.0;
      if (tensor.dtype == DType::F64 || tensor.dtype == DType::F32) tensor[i] = normal(own);
    }
    interpreter.inputs[input.name] = std::move(tensor);
  }
  if (interpreter.inputs.contains("mean")) interpreter.inputs["mean"][0] = 1;
  return interpreter;
}

ir::Point small_point(int64_t b, int64_t t, int64_t s, int64_t c) {
  ir::Point point;
  point[Symbol::B] = b;
  point[Symbol::T] = t;
  point[Symbol::S] = s;
  point[Symbol::C] = c;
  return point;
}

}  // namespace tfc::passes::testing
