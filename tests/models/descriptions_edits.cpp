// Values that callers may change: everything there is, in models that have most kinds of values.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> edit_cases() {
  return {
      {"edits_decoder", 2, 17, 0, R"(
[model]
kind = "decoder"
d_model = 30
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
[ffn]
activation = "swiglu"
[layers.1]
attention = { window = 5 }
[debug]
taps = ["layers.1.*"]
edits = "*"
)"},
      {"edits_pair", 3, 7, 9, R"(
[model]
kind = "encoder-decoder"
d_model = 33
encoder_layers = 1
decoder_layers = 2
heads = 3
d_ff = 31
vocab = 19
src_vocab = 23
max_seq = 40
dropout = 0.2
[norm]
placement = "post"
[train]
recompute = "all"
[debug]
edits = "*"
[residual]
gamma = 0.5
)"},
      {"edits_experts", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 18
layers = 1
heads = 2
d_ff = 15
vocab = 13
max_seq = 20
[ffn]
activation = "geglu"
moe = { experts = 3, top_k = 2, aux_loss = 0.1 }
[debug]
edits = "*"
)"},
      {"edits_frozen", 2, 33, 0, R"(
[model]
kind = "decoder"
d_model = 20
layers = 2
heads = 5
vocab = 17
[position]
type = "alibi"
[attention]
prefix = true
dropout = 0.3
[inputs]
lengths = true
documents = true
positions = true
prefix = true
[train]
freeze = ["embedding", "layers.0"]
[debug]
taps = "*"
edits = ["layers.*"]
)"},
      {"edits_vectors", 2, 11, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 1
heads = 1
[attention]
window = 4
window_after = 2
[debug]
edits = "*"
)"},
      {"edits_classifier", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 16
layers = 2
heads = 4
vocab = 11
max_seq = 9
[embedding]
dim = 7
[head]
type = "classifier"
classes = 3
pool = "mean"
[debug]
edits = ["head.pool", "layers.*.attn", "layers.1.ffn.*", "emb*"]
)"},
  };
}

}  // namespace tfc::models
