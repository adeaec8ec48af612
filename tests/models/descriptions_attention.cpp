// Who sees whom: windows, distances, prefixes, documents, positions.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> attention_cases() {
  return {
      {"window", 2, 17, 0, R"(
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
[attention]
window = 5
)"},
      {"window_of_one_layer", 1, 70, 0, R"(
[model]
kind = "decoder"
d_model = 16
layers = 2
heads = 1
d_ff = 16
vocab = 15
max_seq = 100
pattern = ["local", "wide"]
[block.local]
attention = { window = 66, scale = 0.3 }
[block.wide]
attention = { kv_heads = 1 }
)"},
      {"alibi", 3, 17, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
vocab = 31
[position]
type = "alibi"
)"},
      {"alibi_encoder", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 30
layers = 1
heads = 6
kv_heads = 3
vocab = 17
[position]
type = "alibi"
[head]
type = "classifier"
classes = 3
)"},
      {"prefix", 3, 17, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 2
heads = 1
vocab = 31
max_seq = 33
[attention]
prefix = true
[inputs]
prefix = true
[layers.1]
attention = { window = 5 }
)"},
      {"packed", 3, 15, 0, R"(
[model]
kind = "decoder"
d_model = 18
layers = 2
heads = 2
vocab = 31
max_seq = 33
[inputs]
documents = true
positions = true
[layers.1]
attention = { window = 7 }
)"},
      {"packed_alibi", 2, 33, 0, R"(
[model]
kind = "decoder"
d_model = 20
layers = 1
heads = 5
vocab = 17
[position]
type = "alibi"
[attention]
window = 9
prefix = true
dropout = 0.3
[inputs]
lengths = true
mask = false
documents = true
positions = true
prefix = true
)"},
      {"packed_rope", 2, 16, 0, R"(
[model]
kind = "decoder"
d_model = 16
layers = 1
heads = 2
vocab = 17
[position]
type = "rope"
[inputs]
mask = false
documents = true
positions = true
)"},
      {"encoder_window", 3, 17, 0, R"(
[model]
kind = "encoder"
d_model = 16
layers = 2
heads = 2
vocab = 17
[position]
type = "sinusoidal"
[attention]
window = 4
window_after = 3
[inputs]
documents = true
positions = true
)"},
      {"packed_pair", 3, 7, 9, R"(
[model]
kind = "encoder-decoder"
d_model = 18
encoder_layers = 2
decoder_layers = 2
heads = 3
vocab = 15
max_seq = 33
[inputs]
documents = true
positions = true
)"},
      {"window_pair", 2, 9, 17, R"(
[model]
kind = "encoder-decoder"
d_model = 18
encoder_layers = 1
decoder_layers = 1
heads = 3
vocab = 15
[position]
type = "alibi"
[attention]
window = 5
window_after = 2
prefix = true
[inputs]
prefix = true
)"},
      {"packed_memory", 2, 5, 3, R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 0
decoder_layers = 1
heads = 3
head_dim = 4
vocab = 17
[position]
type = "rope"
rope_style = "interleaved"
[attention]
window = 2
[inputs]
documents = true
positions = true
)"},
  };
}

}  // namespace tfc::models
