// What a TOML description says, checked and fully resolved: no default, pattern or override is left to look
// up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"

namespace tfc::frontend {

/// An attention node's settings; [attention] and heads, kv_heads, head_dim of [model], narrowed by block and
/// layer.
struct AttentionSettings {
  int64_t heads = 0;
  int64_t kv_heads = 0;  // heads
  int64_t head_dim = 0;  // d_model / heads
  double scale = 0;      // 1 / sqrt(head_dim)
  bool qkv_bias = true;  // [attention] bias
  bool o_bias = true;    // [attention] bias
  double dropout = 0;    // of the attention weights; here and below [model] dropout
  int64_t window = 0;        // 0: none; else keys from that many before its own on, its own counted
  int64_t window_after = 0;  // encoders: and so many after it
  bool prefix = false;       // decoders: two-way inside each row's prefix
  friend bool operator==(const AttentionSettings&, const AttentionSettings&) = default;
};

/// A mixture of experts in place of the feed-forward; d_ff is the width of each expert.
struct MoeSettings {
  int64_t experts = 0;  // 0: an ordinary feed-forward
  int64_t top_k = 2;    // at most the number of experts
  bool renormalize = true;
  double aux_loss = 0.0;
  double capacity = 0.0;  // 0: no token is dropped
  friend bool operator==(const MoeSettings&, const MoeSettings&) = default;
};

struct FfnSettings {
  int64_t d_ff = 0;  // 4 * d_model; gated: 8/3 * d_model rounded up to d_ff_multiple
  std::string activation = "gelu";
  bool bias = true;
  double dropout = 0;  // after the activation
  MoeSettings moe;
  friend bool operator==(const FfnSettings&, const FfnSettings&) = default;
};

struct NormSettings {
  std::string type = "layernorm";
  std::string placement = "pre";  // of ordinary layers
  double eps = 1e-5;
  bool bias = true;  // rmsnorm: false
  friend bool operator==(const NormSettings&, const NormSettings&) = default;
};

struct ResidualSettings {
  double scale = 1.0;
  double dropout = 0;  // of what is added
  std::optional<double> gamma;  // LayerScale: what its factors begin with
  friend bool operator==(const ResidualSettings&, const ResidualSettings&) = default;
};

/// Everything that [block.X] and [layers.X] may narrow.
struct LayerSettings {
  AttentionSettings attention;
  FfnSettings ffn;
  NormSettings norm;
  ResidualSettings residual;
  friend bool operator==(const LayerSettings&, const LayerSettings&) = default;
};

/// A node of a written-out block. `op` says which settings count.
struct BlockNode {
  std::string id;
  std::string op;                   // attention ffn norm residual linear activation multiply
  std::vector<std::string> inputs;  // ids of other nodes, or "x"
  AttentionSettings attention;
  bool memory = false;  // attention: source = "memory"
  FfnSettings ffn;
  NormSettings norm;
  ResidualSettings residual;
  int64_t out = 0;            // linear: d_model
  bool bias = true;           // linear
  std::string kind = "gelu";  // activation: relu gelu gelu_tanh silu
  int64_t width = 0;          // of its result
  ir::Place place;
};

/// One layer: an ordinary block with these settings, or the nodes of a written-out one, in an order in which
/// every node comes after its inputs; the last is the block's output.
struct Layer {
  std::string block;  // name of [block.NAME]; "" the ordinary block
  bool written_out = false;
  bool shared = false;  // its weights are those of all layers of its block in its stack
  LayerSettings settings;
  std::vector<BlockNode> nodes;
  ir::Place place;
};

struct ModelSettings {
  std::string name;  // the file's stem
  std::string kind;  // decoder | encoder | encoder-decoder
  int64_t d_model = 0;
  int64_t vocab = 0;      // 0: hidden states in and out
  int64_t src_vocab = 0;  // encoder-decoder: vocab
  int64_t max_seq = 0;    // 0: no limit
  int64_t d_ff_multiple = 64;
  bool has_encoder_input = false;  // encoder-decoder with encoder_layers > 0: there is a `src`
  bool has_memory_input = false;   // encoder-decoder with encoder_layers = 0: `memory` takes its place
  bool is_encoder_decoder() const { return kind == "encoder-decoder"; }
};

/// Images in place of tokens; size 0: none.
struct PatchSettings {
  int64_t size = 0;  // pixels on a side
  int64_t channels = 0, height = 0, width = 0;
  bool class_token = false;
  int64_t tokens() const { return height / size * (width / size) + (class_token ? 1 : 0); }
};

struct EmbeddingSettings {
  bool tie = true;        // of the heads that write nothing else; afterwards: is a head tied to the table?
  bool tie_sides = true;  // encoder-decoder
  bool scale = false;     // "sqrt_d"
  bool norm = false;
  int64_t types = 0;   // 0: none
  double dropout = 0;  // after the norm
  int64_t dim = 0;    // width of the tables: d_model, or less with a projection after them
  PatchSettings patches;
};

struct PositionSettings {
  std::string type = "learned";  // learned sinusoidal rope alibi none
  double rope_theta = 10000.0;
  std::string rope_style = "half";
};

/// An output of the model, and its loss.
struct HeadSettings {
  std::string name;         // of [head.NAME]; "" the only one, of [head]
  std::string type = "lm";  // lm mlm classifier token_classifier regression none
  int64_t from = -1;        // the layer that it reads; -1: the end of the stack
  bool source = false;      // that layer is of an encoder-decoder's encoder
  bool bias = false;
  bool tie = false;     // lm, mlm: the output projection is the token table
  int64_t classes = 0;  // classifiers, regression
  std::string pool;     // classifier, regression: first mean last; "" a row for each token
  std::string loss = "cross_entropy";  // cross_entropy binary_cross_entropy mse none
  double loss_weight = 1.0;
  int64_t ignore_index = -100;   // cross entropy
  double label_smoothing = 0.0;  // cross entropy
  ir::Place place, loss_place;
  bool reads_table() const { return type == "lm" || type == "mlm"; }
  bool has_loss() const { return loss != "none"; }
};

/// A pattern of names: of parts or parameters that do not move (passes/expand/freeze.h), of values.
struct NamePattern {
  std::string text;
  ir::Place place;
};

/// What the backward computes again instead of keeping it.
struct RecomputeSettings {
  std::string mode = "none";              // none | all | auto
  int64_t bytes = 0, batch = 0, seq = 0;  // auto: what training may own, at that point
  ir::Place place;
};

/// Low-rank adapters beside weights that do not move; rank 0: none.
struct LoraSettings {
  int64_t rank = 0;
  double alpha = 0;
  std::vector<NamePattern> targets;
  ir::Place place;
};

struct TrainSettings {
  std::vector<NamePattern> freeze;
  RecomputeSettings recompute;
  std::string init = "normal";
  double init_std = 0.02;
  bool zero_init = false;  // what ends a branch begins at zero
  LoraSettings lora;
};

/// What callers may look at, and what they may change.
struct DebugSettings {
  std::vector<NamePattern> taps;   // globs of values' names; passes/add_taps.h knows what they mean
  std::vector<NamePattern> edits;  // likewise; passes/add_edits.h
};

struct InputSettings {
  bool mask = true;
  bool lengths = false;
  bool positions = false;
  bool documents = false;
  bool prefix = false;
  bool weights = false;
};

struct ShapeSettings {
  int64_t batch = 0, seq = 0, src_seq = 0;  // 0: free
};

/// [run]: what `transformerc train` does. Not part of the model.
struct RunSettings {
  bool written = false;     // there is a [run]
  std::string task;         // "text": bytes of `data`; "reverse": random sequences to reverse
  std::string data;         // text: path of the file
  int64_t steps = 1000;     // text: optimizer steps
  int64_t epochs = 20;      // reverse
  int64_t examples = 2000;  // reverse: training sequences in an epoch
  int64_t length = 8;       // reverse: of the sequences
  int64_t batch = 32;
  int64_t seq = 0;         // text: tokens in a window; 0 in the file: min(max_seq, 256)
  int64_t accumulate = 1;  // batches in a step
  double lr = 1e-3;
  double min_lr = 0.0;                // where linear and cosine end
  int64_t warmup = 0;                 // steps from 0 to lr
  std::string schedule = "constant";  // constant | linear | cosine
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double clip = 1.0;  // 0: off
  int64_t seed = 0;
  int64_t threads = 0;        // 0: all cores
  double validation = 0.1;    // share of the data that is held back
  int64_t report = 100;       // text: steps between two lines of output
  int64_t sample = 200;       // text: bytes generated at the end
  std::string prompt = "\n";  // text: what the sample begins with
  double temperature = 0.8;   // of the sample
  int64_t top_k = 0;          // of the sample; 0: off
};

/// Where things were written, for the nodes of the graph.
struct DescriptionPlaces {
  ir::Place model, embedding, position, norm, final_norm, head, loss;
};

struct Description {
  ModelSettings model;
  EmbeddingSettings embedding;
  PositionSettings position;
  LayerSettings defaults;          // what the tables themselves say
  std::string final_norm = "yes";  // "yes" | "no" | "auto": no, should auto place the norms after
  std::vector<HeadSettings> heads;  // never empty; one without a name, or several with names
  TrainSettings train;
  InputSettings inputs;
  ShapeSettings shapes;
  RunSettings run;
  DebugSettings debug;
  std::vector<Layer> layers;          // decoder, encoder
  std::vector<Layer> encoder_layers;  // encoder-decoder
  std::vector<Layer> decoder_layers;  // encoder-decoder
  DescriptionPlaces places;
  std::vector<std::string> files;  // read: the description, then what it extends (for --depfile)

  bool has_loss() const {
    return std::any_of(heads.begin(), heads.end(), [](const HeadSettings& head) { return head.has_loss(); });
  }
  /// One that weighs something in the whole loss.
  bool has_loss_that_counts() const {
    const auto counts = [](const HeadSettings& head) { return head.has_loss() && head.loss_weight > 0; };
    return std::any_of(heads.begin(), heads.end(), counts);
  }
  bool has_named_heads() const { return !heads.front().name.empty(); }
  /// Is there one head alone, without a name, of this type?
  bool has_only_head(std::string_view type) const { return !has_named_heads() && heads.front().type == type; }
  bool has_masks() const { return inputs.mask || inputs.lengths; }
  bool has_patches() const { return embedding.patches.size > 0; }
};

}  // namespace tfc::frontend
