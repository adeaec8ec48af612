#include "frontend/resolve.h"

#include <algorithm>

#include "frontend/keys.h"
#include "frontend/model_name.h"
#include "frontend/resolve_heads.h"
#include "frontend/resolve_layers.h"
#include "frontend/resolve_patches.h"
#include "frontend/resolve_run.h"
#include "frontend/resolve_settings.h"
#include "frontend/resolve_train.h"
#include "frontend/scope.h"

namespace tfc::frontend {
namespace {

class Resolver {
 public:
  Resolver(const Document& document, const KeyCheck& keys, const std::string& stem,
           ir::Diagnostics& diagnostics)
      : document_(document), root_(document.root), keys_(keys), stem_(stem), diagnostics_(diagnostics) {}

  Description run() {
    if (!root_.find("model")) {
      if (!document_.damaged)
        diagnostics_.error(root_.place, "there is no [model] table")
            .notes.push_back("a description needs at least kind, d_model, layers and heads in [model]");
      return {};
    }
    places();
    model();
    embedding();
    inputs_and_shapes();
    resolve_patches(root_, d_, diagnostics_);
    position();
    resolve_heads(document_, keys_, d_, diagnostics_);
    weights_need_a_loss();
    training();
    d_.run = resolve_run(root_, d_, diagnostics_);
    final_norm();
    resolve_layers(root_, layer_counts(), d_, document_.damaged, diagnostics_);
    inputs_in_use();
    return std::move(d_);
  }

 private:
  Scope table(const char* name) const { return Scope{root_.valid(name)}; }

  ir::Diagnostic& error(const ir::Place& place, std::string message) {
    return diagnostics_.error(place, std::move(message));
  }

  void no_effect(const Scope& scope, const char* key, const std::string& why) {
    if (scope.has(key))
      diagnostics_.warning("unused-key", scope.find(key)->key,
                           "'" + std::string(key) + "' has no effect: " + why);
  }

  // -- required keys
  // -------------------------------------------------------------------------------------------

  void missing(const char* table_name, const char* key, const std::string& why = {}) {
    const Tree* table = root_.find(table_name);
    if (document_.damaged || keys_.meant.count(std::string(table_name) + "." + key)) return;
    if (table && (table->refused || table->find(key))) return;  // refused: reported already
    error(table ? table->place : root_.place,
          "[" + std::string(table_name) + "] needs the key '" + key +
              "': " + std::string(why.empty() ? find_key(table_name, key)->meaning : why));
  }

  int64_t required(const char* key) {
    const Scope model = table("model");
    if (!model.has(key)) missing("model", key);
    return model.integer(key, 0);
  }

  // -- [model]
  // -------------------------------------------------------------------------------------------------

  void places() {
    const ir::Place model = root_.find("model")->place;
    const auto place = [&](const char* name) {
      const Tree* tree = root_.find(name);
      return tree ? tree->place : model;
    };
    d_.places = {model,         place("embedding"), place("position"), place("norm"),
                 place("norm"), place("head"),      place("loss")};
  }

  void model() {
    const Scope model = table("model");
    if (!model.has("kind")) missing("model", "kind", "\"decoder\", \"encoder\" or \"encoder-decoder\"");
    d_.model.kind = model.text("kind", "");
    d_.model.d_model = required("d_model");
    required("heads");
    name(model);
    d_.model.vocab = model.integer("vocab", 0);
    d_.model.src_vocab = model.integer("src_vocab", d_.model.vocab);
    d_.model.max_seq = model.integer("max_seq", 0);
    d_.model.d_ff_multiple = model.integer("d_ff_multiple", 64);
    if (d_.model.is_encoder_decoder())
      two_stacks(model);
    else if (!d_.model.kind.empty())
      one_stack(model);
  }

  void name(const Scope& model) {
    const std::string name = model.text("name", stem_);
    d_.model.name = name;
    const std::string refusal = refusal_of_name(name);
    if (refusal.empty() || model.was_refused("name")) return;
    const bool written = model.has("name");
    error(model.place("name"), (written ? "no model can be called '"
                                        : "the file's stem names the model, but no model "
                                          "can be called '") +
                                   name + "': " + refusal)
        .notes.push_back((written ? "for example name = \"" : "write name = \"") + allowed_name(name) + "\"");
  }

  void one_stack(const Scope& model) {
    required("layers");
    for (const char* key :
         {"encoder_layers", "decoder_layers", "src_vocab", "encoder_pattern", "decoder_pattern"})
      if (model.has(key))
        error(model.find(key)->key,
              "'" + std::string(key) + "' needs kind = \"encoder-decoder\", found \"" + d_.model.kind + "\"");
  }

  void two_stacks(const Scope& model) {
    if (model.has("layers")) {
      error(model.find("layers")->key,
            "an encoder-decoder has encoder_layers and decoder_layers in place of layers");
      return;
    }
    const int64_t encoder = required("encoder_layers"), decoder = required("decoder_layers");
    if (!model.has("encoder_layers") || !model.has("decoder_layers")) return;
    if (encoder == 0 && decoder == 0)
      error(model.place("decoder_layers"), "encoder_layers and decoder_layers are both 0; one needs a layer");
    d_.model.has_encoder_input = encoder > 0;
    d_.model.has_memory_input = encoder == 0;
    if (encoder == 0 && model.has("src_vocab"))
      error(model.find("src_vocab")->key,
            "'src_vocab' needs an encoder, but encoder_layers = 0: `memory` takes the source's place");
    if (encoder == 0) d_.model.src_vocab = 0;
  }

  std::vector<int64_t> layer_counts() const {
    const Scope model = table("model");
    if (d_.model.is_encoder_decoder())
      return {model.integer("encoder_layers", -1), model.integer("decoder_layers", -1)};
    return {d_.model.kind.empty() ? -1 : model.integer("layers", -1)};
  }

  // -- the other tables
  // ----------------------------------------------------------------------------------------

  void embedding() {
    const Scope embedding = table("embedding");
    d_.embedding.scale = embedding.text("scale", "none") == "sqrt_d";
    d_.embedding.norm = embedding.flag("norm", false);
    d_.embedding.types = embedding.integer("types", 0);
    d_.embedding.dropout = embedding.real("dropout", table("model").real("dropout", 0.0));
    d_.embedding.tie = embedding.flag("tie", true);
    const bool no_table = d_.model.vocab == 0 && d_.model.src_vocab == 0;
    if (d_.embedding.types > 0 && d_.model.kind != "encoder" && !d_.model.kind.empty())
      error(embedding.place("types"), "token types need kind = \"encoder\", found \"" + d_.model.kind + "\"");
    else if (d_.embedding.types > 0 && d_.model.vocab == 0)
      error(embedding.place("types"), "token types need tokens, but vocab = 0: the inputs are hidden states");
    d_.embedding.dim = embedding.integer("dim", d_.model.d_model);
    if (no_table) {
      no_effect(embedding, "dim", "there are no tables");
      d_.embedding.dim = d_.model.d_model;
    }
    const bool factorised = d_.embedding.dim != d_.model.d_model;
    if (factorised && d_.model.has_encoder_input && (d_.model.vocab == 0 || d_.model.src_vocab == 0))
      error(embedding.place("dim"), "dim is the width of both sides' tables, but one side has none");
    if (no_table && d_.embedding.scale)
      no_effect(embedding, "scale", "vocab = 0, so there are no token vectors");
    tie_sides(embedding);
  }

  void tie_sides(const Scope& embedding) {
    const bool two_sides = d_.model.has_encoder_input;
    const bool equal = d_.model.src_vocab == d_.model.vocab;
    d_.embedding.tie_sides = two_sides && embedding.flag("tie_sides", equal);
    if (d_.embedding.tie_sides && !equal)
      error(embedding.place("tie_sides"),
            "source and target can share one table only where their vocabularies are "
            "equal, but src_vocab = " +
                std::to_string(d_.model.src_vocab) + " and vocab = " + std::to_string(d_.model.vocab));
    if (!two_sides && embedding.flag("tie_sides", false) && !d_.model.kind.empty())
      no_effect(embedding, "tie_sides", "there is one side alone");
  }

  void position() {
    const Scope position = table("position");
    d_.position.type = position.text("type", d_.model.vocab == 0 && !patches_written() ? "none" : "learned");
    d_.position.rope_theta = position.real("rope_theta", 10000.0);
    d_.position.rope_style = position.text("rope_style", "half");
    const bool known = position.has("type") || !position.was_refused("type");
    if (known && d_.position.type == "learned" && !table("model").has("max_seq") && !patches_written() &&
        !table("model").was_refused("vocab"))
      learned_without_limit(position);
    if (known && d_.position.type != "rope")
      for (const char* key : {"rope_theta", "rope_style"})
        no_effect(position, key, "positions are " + d_.position.type);
  }

  bool patches_written() const {
    const Tree* embedding = root_.find("embedding");
    return embedding && embedding->find("patches");
  }

  void learned_without_limit(const Scope& position) {
    const bool written = position.has("type");
    missing("model", "max_seq",
            written ? "learned positions are a table of max_seq rows"
                    : "learned positions, the default, are a table of max_seq rows; or write another type in "
                      "[position]");
  }

  void final_norm() {
    const Scope norm = table("norm");
    const std::string placement = norm.text("placement", "pre");
    d_.final_norm = placement == "post" ? "no" : placement == "auto" ? "auto" : "yes";
    if (norm.has("final")) d_.final_norm = norm.flag("final", true) ? "yes" : "no";
    for (const char* key : {"final", "placement"})
      if (const Tree* tree = norm.find(key)) d_.places.final_norm = tree->place;
    if (norm.has("final")) d_.places.final_norm = norm.place("final");
  }

  void training() {
    const Scope train = table("train");
    d_.train.freeze = resolve_patterns(train, "freeze");
    d_.debug.taps = resolve_patterns(table("debug"), "taps");
    d_.debug.edits = resolve_patterns(table("debug"), "edits");
    d_.train.recompute = resolve_recompute(train, diagnostics_);
    d_.train.lora = resolve_lora(train, diagnostics_);
    d_.train.zero_init = train.flag("zero_init", false);
    d_.train.init = train.text("init", "normal");
    d_.train.init_std = train.real("init_std", 0.02);
    if (d_.train.init == "xavier" || d_.train.init == "torch")
      no_effect(train, "init_std", "init = \"" + d_.train.init + "\" has deviations of its own");
  }

  void weights_need_a_loss() {
    if (!d_.inputs.weights || d_.has_loss()) return;
    no_effect(table("inputs"), "weights", "there is no loss");
    d_.inputs.weights = false;
  }

  void inputs_and_shapes() {
    const Scope inputs = table("inputs"), shapes = table("shapes");
    d_.inputs = {inputs.flag("mask", !patches_written()),
                 inputs.flag("lengths", false),
                 inputs.flag("positions", false),
                 inputs.flag("documents", false),
                 inputs.flag("prefix", false),
                 inputs.flag("weights", false)};
    d_.shapes = {shapes.integer("batch", 0), shapes.integer("seq", 0), shapes.integer("src_seq", 0)};
    if (shapes.has("src_seq") && !d_.model.is_encoder_decoder() && !d_.model.kind.empty())
      error(shapes.find("src_seq")->key,
            "'src_seq' needs kind = \"encoder-decoder\", found \"" + d_.model.kind + "\"");
    for (const auto& [key, size] : {std::pair("seq", d_.shapes.seq), std::pair("src_seq", d_.shapes.src_seq)})
      if (d_.model.max_seq > 0 && size > d_.model.max_seq)
        error(shapes.place(key), std::string(key) + " = " + std::to_string(size) +
                                     " is longer than max_seq = " + std::to_string(d_.model.max_seq));
  }

  /// Inputs that are declared but read by nothing.
  void inputs_in_use() {
    const Scope inputs = table("inputs");
    if (d_.inputs.positions && d_.position.type == "none" && !table("position").was_refused("type"))
      no_effect(inputs, "positions", "the model has no positions");
    if (!d_.inputs.prefix) return;
    for (const std::vector<Layer>* layers : {&d_.layers, &d_.decoder_layers})
      for (const Layer& layer : *layers) {
        if (layer.settings.attention.prefix && !layer.written_out) return;
        for (const BlockNode& node : layer.nodes)
          if (node.op == "attention" && node.attention.prefix) return;
      }
    if (!document_.damaged) no_effect(inputs, "prefix", "no attention has prefix = true");
  }

  const Document& document_;
  const Tree& root_;
  const KeyCheck& keys_;
  const std::string& stem_;
  ir::Diagnostics& diagnostics_;
  Description d_;
};

}  // namespace

Description resolve(const Document& document, const KeyCheck& keys, const std::string& stem,
                    ir::Diagnostics& diagnostics) {
  return Resolver(document, keys, stem, diagnostics).run();
}

}  // namespace tfc::frontend
