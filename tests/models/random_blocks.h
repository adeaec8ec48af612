// The parts of a random description that stand in tables, in blocks and in nodes alike.
#pragma once

#include "models/random_source.h"

namespace tfc::models {

/// What parts must know of the whole.
struct BlockFacts {
  int64_t width = 0;     // d_model
  bool pair = false;     // encoder-decoder
  bool decoder = false;  // causal self-attention
  bool rope = false;     // head widths are even
  bool prefix = false;   // prefixes are an input
  bool drops = false;    // something is dropped somewhere
  bool experts = false;  // some feed-forwards are mixtures
};

/// Keys, one on each line.
std::string random_head_keys(RandomSource& draw, const BlockFacts& facts);  // heads, kv_heads, head_dim
std::string random_attention(RandomSource& draw, const BlockFacts& facts);
std::string random_sight(RandomSource& draw, const BlockFacts& facts);  // of self-attention
std::string random_ffn(RandomSource& draw, const BlockFacts& facts);
std::string random_norm(RandomSource& draw);  // type, eps, bias
std::string random_residual(RandomSource& draw, const BlockFacts& facts);

/// The body of [block.NAME]: the ordinary block with other settings, or one written out.
/// `memory`: its layer may attend to the encoder's output.
std::string random_block(RandomSource& draw, const BlockFacts& facts, bool memory);

/// The body of [layers.X]: some of an ordinary block's tables.
std::string random_settings(RandomSource& draw, const BlockFacts& facts);

}  // namespace tfc::models
