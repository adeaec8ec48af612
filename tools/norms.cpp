// transformerc norms: what each norm placement does to activations and gradients at initialisation.
//
// A stack of L layers is never compiled: one layer is (one for each kind of layer in the stack), and run L
// times with L sets of freshly drawn parameters, forward and, through vjp, backward. So 96 layers cost no
// more memory than one.
#include <algorithm>
#include <map>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/common.h"
#include "tools/loaded_library.h"
#include "tools/random.h"
#include "tools/verbs.h"

namespace tfc::tools {
namespace {

using frontend::Description;
using frontend::Layer;
using llvm::formatv;

struct LayerFigures {
  double deviation = 0;       // of the layer's output
  double gradient = 0;        // norm of the gradient of the layer's parameters
  double input_gradient = 0;  // norm of the gradient of the layer's input
};

struct Sizes {
  int64_t B, T, S, D;
};

enum class Side { Only, Encoder, Decoder };

std::string side_prefix(Side side) {
  return side == Side::Only ? "layers." : side == Side::Encoder ? "encoder.layers." : "decoder.layers.";
}

// Hidden states in, hidden states out, and this one layer between them.
Description one_layer(const Description& full, const Layer& layer, Side side, bool final_norm) {
  Description one = full;
  one.model.vocab = one.model.src_vocab = one.model.max_seq = 0;
  one.embedding = {};
  one.embedding.tie = one.embedding.tie_sides = false;
  if (one.position.type != "rope") one.position.type = "none";
  one.heads.assign(1, {});
  one.heads.front().type = one.heads.front().loss = "none";
  one.inputs = {};
  one.inputs.mask = false;
  one.shapes = {};
  one.final_norm = final_norm ? "yes" : "no";
  one.layers.clear();
  one.encoder_layers.clear();
  one.decoder_layers.clear();
  if (side == Side::Encoder) one.model.kind = "encoder";
  (side == Side::Decoder ? one.decoder_layers : one.layers) = {layer};
  one.model.has_encoder_input = false;
  one.model.has_memory_input = side == Side::Decoder;
  return one;
}

// The parameters of the whole model, for how each begins: some ways to begin depend on the number of layers.
std::optional<ir::Module> whole_model(const Description& full, const Options& options,
                                      ir::Diagnostics& diagnostics) {
  ir::Module module = frontend::build_blocks(full, options.precision);
  if (!passes::run_pipeline(module, ir::Phase::Ops, pass_options_of(options, module), diagnostics))
    return std::nullopt;
  return module;
}

// Forward and backward through one stack with one placement.
class Stack {
 public:
  Stack(const Options& options, const codegen::Target& target, const Description& full,
        const ir::Module& whole, Side side, Sizes sizes)
      : options_(options),
        target_(target),
        full_(full),
        whole_(whole),
        side_(side),
        sizes_(sizes),
        layers_(side == Side::Only      ? full.layers
                : side == Side::Encoder ? full.encoder_layers
                                        : full.decoder_layers) {}

  size_t depth() const { return layers_.size(); }
  std::vector<LayerFigures> figures;

  /// The stack's output, its final norm applied.
  bool forward(std::vector<double> x, const std::vector<double>& memory, bool final_norm,
               ir::Diagnostics& diagnostics) {
    memory_ = memory;
    final_norm_ = final_norm;
    inputs_ = {std::move(x)};
    for (size_t i = 0; i < depth(); ++i) {
      LoadedModel* model = model_of(i, false, diagnostics);
      if (!model) return false;
      draw_parameters(*model, i);
      inputs_.push_back(run(*model, inputs_.back()));
      figures.push_back({deviation(inputs_.back()), 0, 0});
    }
    return true;
  }
  const std::vector<double>& output() const { return inputs_.back(); }

  /// From the gradient of the (finally normed) output to that of the input; that of the memory is added to
  /// `dmemory`.
  bool backward(std::vector<double> dy, std::vector<double>& dmemory, std::vector<double>& dx,
                ir::Diagnostics& diagnostics) {
    for (size_t i = depth(); i-- > 0;) {
      LoadedModel* model = model_of(i, final_norm_ && i + 1 == depth(), diagnostics);
      if (!model) return false;
      draw_parameters(*model, i);
      dy = vjp(*model, inputs_[i], dy, dmemory);
      figures[i].gradient = parameter_gradient(*model);
      figures[i].input_gradient = norm(dy);
    }
    dx = std::move(dy);
    return true;
  }

  /// The output through the final norm, which only the last layer's library has: what a decoder is given as
  /// memory.
  bool normed_output(std::vector<double>& output, ir::Diagnostics& diagnostics) {
    LoadedModel* model = final_norm_ ? model_of(depth() - 1, true, diagnostics) : nullptr;
    if (final_norm_ && !model) return false;
    output = inputs_.back();
    if (!model) return true;
    draw_parameters(*model, depth() - 1);
    output = run(*model, inputs_[depth() - 1]);
    return true;
  }

 private:
  static double norm(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v * v;
    return std::sqrt(sum);
  }
  static double deviation(const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const double v : values) sum += v;
    const double mean = sum / static_cast<double>(values.size());
    for (const double v : values) squares += (v - mean) * (v - mean);
    return std::sqrt(squares / static_cast<double>(values.size()));
  }

  struct Compiled {
    Layer layer;
    bool final_norm;
    std::unique_ptr<LoadedLibrary> library;
    std::unique_ptr<LoadedModel> model;
  };

  // Layers alike in everything but their number share a library.
  static bool alike(const Layer& a, const Layer& b) {
    return a.block == b.block && a.written_out == b.written_out && a.settings == b.settings && !a.written_out;
  }

  LoadedModel* model_of(size_t index, bool final_norm, ir::Diagnostics& diagnostics) {
    const Layer& layer = layers_[index];
    for (const Compiled& known : compiled_) {
      const bool same = layer.written_out
                            ? known.layer.place.line == layer.place.line && known.layer.block == layer.block
                            : alike(known.layer, layer);
      if (same && known.final_norm == final_norm) return known.model.get();
    }
    const Description one = one_layer(full_, layer, side_, final_norm);
    ir::Module module = frontend::build_blocks(one, options_.precision);
    const passes::PassOptions pass_options = pass_options_of(options_, module);
    Compiled fresh{layer, final_norm, compile_and_load(std::move(module), pass_options, target_, diagnostics),
                   nullptr};
    if (!fresh.library) return nullptr;
    fresh.model = std::make_unique<LoadedModel>(*fresh.library, 0, 0);
    compiled_.push_back(std::move(fresh));
    return compiled_.back().model.get();
  }

  // Parameter "layers.0.attn.q.weight" of the one layer is "layers.7.attn.q.weight" of the model.
  void draw_parameters(LoadedModel& model, size_t index) {
    for (const tc_parameter& parameter : model.parameters()) {
      std::string name = parameter.name;
      const std::string prefix = side_ == Side::Decoder ? "decoder.layers.0." : "layers.0.";
      if (name.starts_with(prefix))
        name = side_prefix(side_) + std::to_string(index) + "." + name.substr(prefix.size());
      const ir::Parameter* known = whole_.parameter(name);
      const ir::Init init =
          known ? known->init : ir::Init{ir::Init::Kind::Constant, name.ends_with(".weight") ? 1.0 : 0.0};
      Random random(std::hash<std::string>{}(name));
      std::vector<double> values(static_cast<size_t>(parameter.elements));
      for (double& value : values) {
        switch (init.kind) {
          case ir::Init::Kind::Constant:
            value = init.value;
            break;
          case ir::Init::Kind::Normal:
            value = init.value * random.normal();
            break;
          case ir::Init::Kind::Uniform:
            value = init.value * (2 * random.uniform() - 1);
            break;
        }
      }
      model.write(model.api().parameter(model.model(), parameter.name), values);
    }
  }

  struct Batch {
    tc_batch batch{};
    std::vector<uint8_t> x, memory;
  };
  Batch batch_of(const LoadedModel& model, const std::vector<double>& x) const {
    Batch b;
    b.x.resize(x.size() * static_cast<size_t>(model.info().real_bytes));
    model.write(b.x.data(), x);
    b.memory.resize(memory_.size() * static_cast<size_t>(model.info().real_bytes));
    model.write(b.memory.data(), memory_);
    b.batch.size = sizeof b.batch;
    b.batch.B = sizes_.B;
    b.batch.T = side_ == Side::Encoder ? sizes_.S : sizes_.T;
    if (side_ == Side::Decoder) {
      b.batch.S = sizes_.S;
      b.batch.tgt = b.x.data();
      b.batch.memory = b.memory.data();
    } else {
      b.batch.x = b.x.data();
    }
    return b;
  }

  std::vector<double> run(const LoadedModel& model, const std::vector<double>& x) const {
    const Batch b = batch_of(model, x);
    std::vector<uint8_t> y(b.x.size());
    void* outputs[] = {y.data()};
    model.check(model.api().forward(model.session(), &b.batch, 0, outputs));
    return model.read(y.data(), static_cast<int64_t>(x.size()));
  }

  std::vector<double> vjp(const LoadedModel& model, const std::vector<double>& x,
                          const std::vector<double>& dy, std::vector<double>& dmemory) const {
    const Batch b = batch_of(model, x);
    std::vector<uint8_t> upstream(b.x.size()), dx(b.x.size()), dm(b.memory.size());
    model.write(upstream.data(), dy);
    const void* grad_outputs[] = {upstream.data()};
    void* grad_inputs[] = {dx.data(), dm.data()};
    model.check(model.api().vjp(model.session(), &b.batch, 0, grad_outputs, grad_inputs));
    const std::vector<double> added = model.read(dm.data(), static_cast<int64_t>(memory_.size()));
    dmemory.resize(memory_.size());
    for (size_t i = 0; i < added.size(); ++i) dmemory[i] += added[i];
    return model.read(dx.data(), static_cast<int64_t>(x.size()));
  }

  double parameter_gradient(const LoadedModel& model) const {
    double squares = 0;
    for (const tc_parameter& parameter : model.parameters()) {
      if (!std::string(parameter.name).starts_with(side_ == Side::Decoder ? "decoder.layers." : "layers."))
        continue;
      const double one =
          norm(model.read(model.api().gradient(model.model(), parameter.name), parameter.elements));
      squares += one * one;
    }
    return std::sqrt(squares);
  }

  const Options& options_;
  const codegen::Target& target_;
  const Description& full_;
  const ir::Module& whole_;
  const Side side_;
  const Sizes sizes_;
  std::vector<Layer> layers_;
  bool final_norm_ = false;
  std::vector<double> memory_;
  std::vector<std::vector<double>> inputs_;  // of layer i; the last is the output
  std::vector<Compiled> compiled_;
};

std::vector<double> normals(int64_t count, double scale, uint64_t seed) {
  Random random(seed);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = scale * random.normal();
  return values;
}

// The deviation of what enters the first layer: what the embedding's tables begin with. Hidden states given:
// N(0,1).
double input_deviation(const Description& full, const ir::Module& whole) {
  if (full.model.vocab == 0 || full.embedding.norm) return 1;
  double squares = 0;
  for (const char* name : {"tok_emb.weight", "tgt_emb.weight"}) {
    if (const ir::Parameter* table = whole.parameter(name)) {
      const double scale = full.embedding.scale ? std::sqrt(static_cast<double>(full.model.d_model)) : 1;
      squares += scale * scale * table->init.value * table->init.value;
    }
  }
  for (const char* name : {"pos_emb.weight", "tgt_pos_emb.weight", "type_emb.weight"}) {
    if (const ir::Parameter* table = whole.parameter(name)) squares += table->init.value * table->init.value;
  }
  if (full.position.type == "sinusoidal") squares += 0.5;
  return std::sqrt(squares);
}

struct Placement {
  std::string name;
  std::vector<LayerFigures> layers;  // the encoder's, then the decoder's
};

bool measure(Placement& placement, Description full, const Options& options, const codegen::Target& target,
             Sizes sizes, double scale, ir::Diagnostics& diagnostics) {
  for (auto* layers : {&full.layers, &full.encoder_layers, &full.decoder_layers}) {
    for (Layer& layer : *layers) layer.settings.norm.placement = placement.name;
  }
  const bool final_norm = placement.name != "post";
  full.final_norm = final_norm ? "yes" : "no";
  const auto whole = whole_model(full, options, diagnostics);
  if (!whole) return false;

  const int64_t own = sizes.B * sizes.T * sizes.D, source = sizes.B * sizes.S * sizes.D;
  std::vector<double> upstream = normals(own, 1 / std::sqrt(static_cast<double>(own)), 1), dmemory, dx;
  if (!full.model.is_encoder_decoder()) {
    Stack stack(options, target, full, *whole, Side::Only, sizes);
    if (!stack.forward(normals(own, scale, 2), {}, final_norm, diagnostics)) return false;
    if (!stack.backward(upstream, dmemory, dx, diagnostics)) return false;
    placement.layers = stack.figures;
    return true;
  }
  Stack encoder(options, target, full, *whole, Side::Encoder, sizes);
  Stack decoder(options, target, full, *whole, Side::Decoder, sizes);
  std::vector<double> memory = normals(source, scale, 3);
  if (encoder.depth() > 0) {
    if (!encoder.forward(memory, {}, final_norm, diagnostics) || !encoder.normed_output(memory, diagnostics))
      return false;
  }
  if (decoder.depth() > 0) {
    if (!decoder.forward(normals(own, scale, 2), memory, final_norm, diagnostics)) return false;
    if (!decoder.backward(upstream, dmemory, dx, diagnostics)) return false;
  } else {
    dmemory = normals(source, 1 / std::sqrt(static_cast<double>(source)), 1);
  }
  std::vector<double> none;
  if (encoder.depth() > 0 && !encoder.backward(dmemory, none, dx, diagnostics)) return false;
  placement.layers = encoder.figures;
  placement.layers.insert(placement.layers.end(), decoder.figures.begin(), decoder.figures.end());
  return true;
}

std::vector<std::string> layer_names(const Description& full) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<Layer>& layers, const std::string& stack) {
    for (size_t i = 0; i < layers.size(); ++i) names.push_back(stack + std::to_string(i + 1));
  };
  add(full.layers, "");
  add(full.encoder_layers, "encoder ");
  add(full.decoder_layers, "decoder ");
  return names;
}

void print_text(const Description& full, const std::vector<Placement>& placements, Sizes sizes,
                double scale) {
  auto& out = llvm::outs();
  out << formatv(
      "{0}: activations and gradients at initialisation, B={1} T={2}, input N(0,{3:f2}^2), written placement "
      "{4}\n",
      full.model.name, sizes.B, sizes.T, scale, full.defaults.norm.placement);
  out << "std: of the layer's output   grad: norm of its parameters' gradient, for a random upstream "
         "gradient of norm 1\n\n";
  out << formatv("{0,-12}", "layer");
  for (const Placement& placement : placements) out << formatv("  {0,22}", placement.name + ": std     grad");
  out << "\n";
  const std::vector<std::string> names = layer_names(full);
  for (size_t i = 0; i < names.size(); ++i) {
    out << formatv("{0,-12}", names[i]);
    for (const Placement& placement : placements) {
      out << formatv("  {0,13:f2} {1,8:e2}", placement.layers[i].deviation, placement.layers[i].gradient);
    }
    out << "\n";
  }
}

void print_json(const Description& full, const std::vector<Placement>& placements, Sizes sizes,
                double scale) {
  auto& out = llvm::outs();
  out << formatv(
      "{{\"model\": \"{0}\", \"B\": {1}, \"T\": {2}, \"input_std\": {3:e6}, \"written\": \"{4}\", "
      "\"placements\": {{",
      full.model.name, sizes.B, sizes.T, scale, full.defaults.norm.placement);
  const std::vector<std::string> names = layer_names(full);
  for (const Placement& placement : placements) {
    out << (&placement == &placements[0] ? "" : ", ") << "\"" << placement.name << "\": [";
    for (size_t i = 0; i < placement.layers.size(); ++i) {
      const LayerFigures& layer = placement.layers[i];
      out << (i ? ", " : "")
          << formatv(
                 "{{\"layer\": \"{0}\", \"std\": {1:e6}, \"gradient\": {2:e6}, \"input_gradient\": {3:e6}}",
                 names[i], layer.deviation, layer.gradient, layer.input_gradient);
    }
    out << "]";
  }
  out << "}}\n";
}

}  // namespace

int norms(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  const auto target = target_of(options, diagnostics);
  const auto file = target ? read_input(options, diagnostics) : nullptr;
  if (!file) return finish(options, diagnostics);
  const auto full = frontend::load_description(file, options.overrides, diagnostics);
  if (!full) return finish(options, diagnostics);

  ir::Diagnostics unheard;  // the placements that are not written have nothing to say to the user
  const ir::Module written = frontend::build_blocks(*full, options.precision);
  const ir::Point point = pass_options_of(options, written).point;
  const Sizes sizes{point[ir::Symbol::B], point[ir::Symbol::T], point[ir::Symbol::S], full->model.d_model};
  const auto whole = whole_model(*full, options, diagnostics);
  if (!whole || !check_point(point, written, diagnostics)) return finish(options, diagnostics);
  const double scale = input_deviation(*full, *whole);
  std::vector<Placement> placements = {{"post", {}}, {"pre", {}}, {"sandwich", {}}};
  try {
    for (Placement& placement : placements) {
      if (!measure(placement, *full, options, *target, sizes, scale, unheard))
        return finish(options, unheard);
    }
  } catch (const LibraryError& error) {
    return complain(error.message, kInputIsWrong);
  }
  finish(options, diagnostics);
  (options.json ? print_json : print_text)(*full, placements, sizes, scale);
  return kDone;
}

}  // namespace tfc::tools
