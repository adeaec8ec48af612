// Blocks that are written out.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> block_cases() {
  return {
      {"parallel_block", 3, 15, 0, R"(
[model]
kind = "decoder"
d_model = 15
layers = 2
heads = 3
head_dim = 4
vocab = 17
pattern = ["gptj"]
[position]
type = "rope"
rope_style = "interleaved"
[block.gptj]
nodes = [
  { id = "norm1", op = "norm",      in = "x" },
  { id = "attn",  op = "attention", in = "norm1" },
  { id = "ffn",   op = "ffn",       in = "norm1", activation = "swiglu" },
  { id = "out",   op = "residual",  in = ["x", "attn", "ffn"], scale = 0.5 },
]
)"},
      {"no_residual", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 2
heads = 1
vocab = 15
pattern = ["plain"]
[position]
type = "sinusoidal"
[block.plain]
nodes = [
  { id = "attn",  op = "attention", in = "x" },
  { id = "norm1", op = "norm",      in = "attn" },
  { id = "ffn",   op = "ffn",       in = "norm1", activation = "relu" },
]
)"},
      {"two_blocks", 2, 17, 0, R"(
[model]
kind = "decoder"
d_model = 15
layers = 5
heads = 3
vocab = 17
max_seq = 17
pattern = ["narrow", "narrow", "wide"]
[block.narrow]
attention = { kv_heads = 1 }
ffn = { activation = "relu" }
[block.wide]
attention = { heads = 5, head_dim = 1, bias = false }
ffn = { activation = "geglu" }
norm = { type = "rmsnorm", placement = "sandwich" }
[layers.4]
residual = { scale = 0.3 }
[layers.-2]
ffn = { bias = false }
)"},
      {"written_gate", 3, 3, 0, R"(
[model]
kind = "decoder"
d_model = 31
layers = 1
heads = 1
vocab = 3
max_seq = 3
pattern = ["gated"]
[block.gated]
nodes = [
  { id = "norm1", op = "norm",       in = "x", type = "rmsnorm" },
  { id = "attn",  op = "attention",  in = "norm1", heads = 3, head_dim = 5, kv_heads = 1 },
  { id = "sum",   op = "residual",   in = ["x", "attn"] },
  { id = "norm2", op = "norm",       in = "sum" },
  { id = "a",     op = "linear",     in = "norm2", out = 33 },
  { id = "b",     op = "linear",     in = "norm2", out = 33, bias = false },
  { id = "act",   op = "activation", in = "a", kind = "silu" },
  { id = "gated", op = "multiply",   in = ["act", "b"] },
  { id = "back",  op = "linear",     in = "gated" },
  { id = "out",   op = "residual",   in = ["sum", "back", "attn"], scale = 2.0 },
]
)"},
      {"cross_first", 2, 5, 9, R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 1
decoder_layers = 2
heads = 3
d_ff = 17
vocab = 17
max_seq = 9
decoder_pattern = ["memory_first"]
[block.memory_first]
nodes = [
  { id = "norm1", op = "norm",      in = "x" },
  { id = "cross", op = "attention", in = "norm1", source = "memory" },
  { id = "attn",  op = "attention", in = "norm1" },
  { id = "ffn",   op = "ffn",       in = "norm1" },
  { id = "out",   op = "residual",  in = ["x", "attn", "ffn", "cross"] },
]
[decoder.layers.1]
residual = { scale = 0.5 }
)"},
  };
}

}  // namespace tfc::models
