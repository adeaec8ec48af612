// Frozen parts, and forwards that the backward computes again.
#include "models/descriptions.h"
#include "models/ends_with_attention.h"

namespace tfc::models {

std::vector<Case> training_cases() {
  return {
      {"frozen_below", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 3
heads = 3
vocab = 31
max_seq = 33
[train]
freeze = ["embedding", "layers.0-1"]
)"},
      {"frozen_parts", 2, 7, 5, R"(
[model]
kind = "encoder-decoder"
d_model = 18
encoder_layers = 2
decoder_layers = 2
heads = 3
d_ff = 23
vocab = 19
max_seq = 9
[ffn]
activation = "swiglu"
[train]
freeze = ["encoder.layers.0", "decoder.layers.1.attn.q", "decoder.layers.0.ffn.gate", "*.bias", "final_norm"]
)"},
      {"frozen_all", 2, 7, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 1
heads = 1
vocab = 19
max_seq = 9
[head]
type = "classifier"
classes = 3
[train]
freeze = "*"
)"},
      {"frozen_floats", 2, 7, 0, R"(
[model]
kind = "encoder"
d_model = 18
layers = 3
heads = 2
[norm]
placement = "post"
[train]
freeze = ["layers.0", "layers.1.*.weight", "layers.2.norm?.*"]
)"},
      {"again_all", 2, 17, 0, R"(
[model]
kind = "decoder"
d_model = 34
layers = 3
heads = 4
kv_heads = 2
head_dim = 6
d_ff = 45
vocab = 31
[position]
type = "rope"
[norm]
type = "rmsnorm"
[ffn]
activation = "swiglu"
[train]
recompute = "all"
)"},
      {"again_ends_with_attention", 2, 7, 0, kEndsWithAttention},
      // The same of a norm.
      {"again_ends_with_norm", 2, 7, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 2
heads = 1
[norm]
placement = "post"
[train]
recompute = "all"
)"},
      {"again_pair", 2, 7, 9, R"(
[model]
kind = "encoder-decoder"
d_model = 33
encoder_layers = 2
decoder_layers = 2
heads = 3
vocab = 31
max_seq = 33
[norm]
placement = "post"
[train]
recompute = "all"
freeze = "encoder.layers.0"
)"},
  };
}

}  // namespace tfc::models
