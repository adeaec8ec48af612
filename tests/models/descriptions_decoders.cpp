// Decoders.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> decoder_cases() {
  return {
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
  };
}

}  // namespace tfc::models
