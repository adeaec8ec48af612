#include "models/descriptions.h"

#include <stdexcept>

namespace tfc::models {

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      // Decoders.
      {"gpt", 3, 17, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
vocab = 31
max_seq = 33
)"},
      {"llama", 2, 15, 0, R"(
[model]
kind = "decoder"
d_model = 31
layers = 2
heads = 6
kv_heads = 2
head_dim = 6
d_ff = 33
vocab = 17
[position]
type = "rope"
[norm]
type = "rmsnorm"
[attention]
bias = false
[ffn]
activation = "swiglu"
bias = false
)"},
      {"rope_interleaved_with_biases", 1, 31, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 1
heads = 5
kv_heads = 1
head_dim = 10
d_ff = 15
vocab = 33
[position]
type = "rope"
rope_style = "interleaved"
rope_theta = 500.0
[ffn]
activation = "silu"
)"},
      {"rope_half_with_biases", 3, 5, 0, R"(
[model]
kind = "decoder"
d_model = 15
layers = 1
heads = 3
head_dim = 34
d_ff = 5
vocab = 5
[position]
type = "rope"
[embedding]
tie = false
[ffn]
activation = "reglu"
)"},
      {"untied_sandwich", 5, 3, 0, R"(
[model]
kind = "decoder"
d_model = 5
layers = 2
heads = 1
d_ff = 17
vocab = 15
max_seq = 5
[embedding]
tie = false
scale = "sqrt_d"
norm = true
[norm]
placement = "sandwich"
[ffn]
activation = "geglu"
[head]
bias = true
[loss]
label_smoothing = 0.1
)"},
      {"one_of_everything", 1, 1, 0, R"(
[model]
kind = "decoder"
d_model = 1
layers = 1
heads = 1
d_ff = 1
vocab = 1
max_seq = 1
[ffn]
activation = "relu"
)"},
      {"width_one_head_dim_three", 3, 3, 0, R"(
[model]
kind = "decoder"
d_model = 3
layers = 2
heads = 5
kv_heads = 1
head_dim = 3
d_ff = 31
vocab = 3
[position]
type = "sinusoidal"
[norm]
type = "rmsnorm"
placement = "post"
final = true
[ffn]
activation = "gelu_tanh"
[inputs]
mask = false
lengths = true
)"},
      {"scaled_tied", 5, 17, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 1
heads = 1
head_dim = 15
d_ff = 3
vocab = 5
[embedding]
scale = "sqrt_d"
[position]
type = "none"
[norm]
placement = "post"
bias = false
[attention]
qkv_bias = false
scale = 0.7
[ffn]
bias = false
[loss]
label_smoothing = 0.25
ignore_index = 2
)"},
      {"grouped", 3, 33, 0, R"(
[model]
kind = "decoder"
d_model = 5
layers = 1
heads = 15
kv_heads = 5
head_dim = 1
d_ff = 33
vocab = 17
[position]
type = "sinusoidal"
[attention]
o_bias = false
[ffn]
activation = "swiglu"
[inputs]
mask = true
lengths = true
)"},
      {"wide_head", 1, 5, 0, R"(
[model]
kind = "decoder"
d_model = 31
layers = 1
heads = 1
head_dim = 33
d_ff = 31
vocab = 33
max_seq = 5
[norm]
placement = "auto"
)"},
      {"decoder_hidden_states", 3, 15, 0, R"(
[model]
kind = "decoder"
d_model = 15
layers = 2
heads = 3
vocab = 17
max_seq = 15
[embedding]
norm = true
[head]
type = "none"
)"},
      {"decoder_floats", 5, 5, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 2
heads = 1
d_ff = 5
)"},
      {"decoder_floats_rope", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 3
layers = 1
heads = 3
head_dim = 2
d_ff = 1
[position]
type = "rope"
rope_style = "interleaved"
[norm]
type = "rmsnorm"
final = false
)"},
      {"decoder_classifier", 5, 15, 0, R"(
[model]
kind = "decoder"
d_model = 15
layers = 1
heads = 3
vocab = 31
max_seq = 17
[head]
type = "classifier"
classes = 3
)"},

      // More tokens than the loss takes at once, and not a multiple.
      {"chunks", 1030, 5, 0, R"(
[model]
kind = "decoder"
d_model = 5
layers = 1
heads = 1
d_ff = 3
vocab = 3
max_seq = 5
[head]
bias = true
)"},

      // Encoders.
      {"bert", 3, 17, 0, R"(
[model]
kind = "encoder"
d_model = 33
layers = 2
heads = 3
d_ff = 17
vocab = 31
max_seq = 31
[embedding]
types = 3
norm = true
[norm]
placement = "post"
eps = 1e-12
[head]
type = "classifier"
classes = 5
pool = "first"
bias = true
)"},
      {"pool_mean", 5, 5, 0, R"(
[model]
kind = "encoder"
d_model = 5
layers = 1
heads = 5
vocab = 15
max_seq = 5
[head]
type = "classifier"
classes = 17
pool = "mean"
[loss]
label_smoothing = 0.1
)"},
      {"pool_last", 3, 31, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 1
heads = 1
head_dim = 6
d_ff = 33
vocab = 3
[position]
type = "rope"
[head]
type = "classifier"
classes = 2
pool = "last"
bias = true
[ffn]
activation = "reglu"
)"},
      {"pool_last_of_floats", 5, 3, 0, R"(
[model]
kind = "encoder"
d_model = 31
layers = 1
heads = 1
d_ff = 1
[head]
type = "classifier"
classes = 3
pool = "last"
[inputs]
mask = false
lengths = true
)"},
      {"encoder_lm", 1, 33, 0, R"(
[model]
kind = "encoder"
d_model = 3
layers = 2
heads = 3
d_ff = 15
vocab = 33
max_seq = 33
[embedding]
types = 1
scale = "sqrt_d"
[norm]
placement = "sandwich"
type = "rmsnorm"
)"},
      {"encoder_floats", 3, 15, 0, R"(
[model]
kind = "encoder"
d_model = 15
layers = 2
heads = 5
kv_heads = 1
d_ff = 17
[norm]
placement = "post"
[ffn]
activation = "relu"
)"},
      {"encoder_floats_with_positions", 1, 3, 0, R"(
[model]
kind = "encoder"
d_model = 33
layers = 1
heads = 11
kv_heads = 11
d_ff = 5
max_seq = 5
[position]
type = "learned"
[norm]
final = false
[inputs]
mask = false
)"},
      {"encoder_hidden_states", 2, 9, 0, R"(
[model]
kind = "encoder"
d_model = 1
layers = 3
heads = 1
head_dim = 3
d_ff = 3
vocab = 5
[position]
type = "sinusoidal"
[head]
type = "none"
)"},

      // Encoder-decoders.
      {"transformer", 3, 15, 17, R"(
[model]
kind = "encoder-decoder"
d_model = 31
encoder_layers = 2
decoder_layers = 2
heads = 3
head_dim = 5
d_ff = 33
vocab = 17
max_seq = 31
)"},
      {"transformer_post", 5, 3, 5, R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 1
decoder_layers = 2
heads = 3
d_ff = 15
vocab = 15
[position]
type = "sinusoidal"
[norm]
placement = "post"
[ffn]
activation = "relu"
[inputs]
mask = false
lengths = true
)"},
      {"two_vocabularies", 1, 5, 31, R"(
[model]
kind = "encoder-decoder"
d_model = 5
encoder_layers = 1
decoder_layers = 1
heads = 5
kv_heads = 1
vocab = 3
src_vocab = 33
max_seq = 33
[embedding]
norm = true
scale = "sqrt_d"
[head]
bias = true
[loss]
label_smoothing = 0.3
)"},
      {"sides_apart_untied", 3, 31, 1, R"(
[model]
kind = "encoder-decoder"
d_model = 17
encoder_layers = 1
decoder_layers = 1
heads = 1
d_ff = 17
vocab = 31
max_seq = 31
[embedding]
tie = false
tie_sides = false
[norm]
placement = "sandwich"
[ffn]
activation = "geglu"
)"},
      {"t5", 2, 9, 7, R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 2
decoder_layers = 1
heads = 4
kv_heads = 2
head_dim = 6
d_ff = 31
vocab = 33
[position]
type = "rope"
[norm]
type = "rmsnorm"
[attention]
bias = false
[ffn]
activation = "swiglu"
bias = false
)"},
      {"memory", 3, 5, 15, R"(
[model]
kind = "encoder-decoder"
d_model = 33
encoder_layers = 0
decoder_layers = 2
heads = 3
d_ff = 3
vocab = 17
max_seq = 15
)"},
      {"memory_of_floats", 3, 17, 3, R"(
[model]
kind = "encoder-decoder"
d_model = 17
encoder_layers = 0
decoder_layers = 1
heads = 1
d_ff = 33
[norm]
placement = "post"
)"},
      {"pair_of_floats", 5, 1, 17, R"(
[model]
kind = "encoder-decoder"
d_model = 3
encoder_layers = 1
decoder_layers = 1
heads = 1
d_ff = 5
)"},
      {"encoder_without_decoder_layers", 3, 3, 3, R"(
[model]
kind = "encoder-decoder"
d_model = 5
encoder_layers = 1
decoder_layers = 0
heads = 1
vocab = 5
max_seq = 3
)"},
      {"pair_hidden_states", 1, 15, 5, R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 1
decoder_layers = 1
heads = 3
vocab = 5
[position]
type = "none"
[head]
type = "none"
)"},

      // Blocks.
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
  return all;
}

const Case& case_named(const std::string& name) {
  for (const Case& model : cases()) {
    if (model.name == name) return model;
  }
  throw std::out_of_range(name);
}

}  // namespace tfc::models
