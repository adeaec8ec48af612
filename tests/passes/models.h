// Small models as graphs of blocks, as the frontend writes them, and what tests do with them.
#pragma once

#include <random>
#include <string>

#include "ir/interpreter.h"
#include "ir/module.h"
#include "passes/pass.h"

namespace tfc::passes::testing {

/// Sizes are odd on purpose. What a field says is what the description's key of that name says.
struct Model {
  std::string kind = "decoder";  // decoder | encoder | encoder-decoder
  std::string head = "lm";       // lm | classifier | none
  std::string placement = "pre";
  std::string norm = "layernorm";
  std::string activation = "gelu";
  std::string position = "learned";
  std::string rope_style = "half";
  std::string init = "normal";
  std::string pool = "mean";
  int64_t d_model = 6, layers = 2, heads = 3, kv_heads = 3, head_dim = 2, d_ff = 5;
  int64_t experts = 0;  // two for each token, with a balancing loss
  int64_t vocab = 7, max_seq = 9, types = 0, classes = 3;
  double embedding_scale = 1.0, residual_scale = 1.0, smoothing = 0.0;
  bool tie = true, mask = false, bias = true, embedding_norm = false, head_bias = false;
  bool memory_input = false;  // encoder-decoder without an encoder
  double gamma = 0;           // LayerScale; 0: none
  std::string shared = "";    // "blocks.NAME": where the parameters of all layers of a side are
};

/// Rotary positions, RMSNorm, a gated feed-forward, grouped queries; with a mask.
Model llama_like(bool tie = true);

/// The module in phase blocks, in float64.
ir::Module blocks(const Model& model);

/// Runs the pipeline; fails the test on any diagnostic.
void run_to(ir::Module& module, ir::Phase phase, const PassOptions& options = {});

/// The module at `phase`.
ir::Module compiled(const Model& model, ir::Phase phase, const PassOptions& options = {});

/// An interpreter whose parameters and inputs of the entry are random: ids in range, masks with at least the
/// first token real, floats of deviation 1. Equal seeds and shapes give equal values.
ir::Interpreter random_inputs(const ir::Module& module, const ir::Entry& entry, const ir::Point& point,
                              unsigned seed = 1);

/// B, T, S, C as odd numbers.
ir::Point small_point(int64_t b = 2, int64_t t = 5, int64_t s = 3, int64_t c = 7);

}  // namespace tfc::passes::testing
