// Encoder-decoders.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> pair_cases() {
  return {
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
  };
}

}  // namespace tfc::models
