// Dropout in every kind of layer and at odd widths: the fused forms differ by placement, gates and what is frozen.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> dropout_cases() {
  return {
      {"dropout_pre", 2, 17, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
vocab = 31
max_seq = 40
dropout = 0.1
[attention]
dropout = 0.5
)"},
      {"dropout_pair_post", 2, 7, 9, R"(
[model]
kind = "encoder-decoder"
d_model = 18
encoder_layers = 1
decoder_layers = 2
heads = 3
vocab = 19
max_seq = 33
dropout = 0.3
[norm]
placement = "post"
[decoder.layers.0]
residual = { dropout = 0.0 }
ffn = { dropout = 1.0 }
)"},
      {"dropout_gated_again", 2, 19, 0, R"(
[model]
kind = "decoder"
d_model = 34
layers = 2
heads = 4
kv_heads = 2
head_dim = 6
d_ff = 45
dropout = 0.2
[position]
type = "rope"
[norm]
type = "rmsnorm"
[ffn]
activation = "swiglu"
[train]
recompute = "all"
)"},
      {"dropout_sandwich", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 15
layers = 2
heads = 3
vocab = 19
max_seq = 9
dropout = 0.4
[embedding]
types = 2
norm = true
[norm]
placement = "sandwich"
[head]
type = "classifier"
classes = 3
pool = "mean"
[train]
freeze = ["embedding"]
)"},
      {"dropout_in_experts", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 2
heads = 1
d_ff = 33
vocab = 19
max_seq = 9
dropout = 0.2
[ffn]
activation = "swiglu"
dropout = 0.5
moe = { experts = 4, top_k = 2, renormalize = false, aux_loss = 0.1, capacity = 0.9 }
)"},
      {"dropout_in_plain_experts", 3, 7, 0, R"(
[model]
kind = "encoder"
d_model = 18
layers = 2
heads = 2
d_ff = 15
[ffn]
dropout = 0.4
moe = { experts = 3, top_k = 3 }
[train]
recompute = "all"
)"},
      {"dropout_parallel", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 16
layers = 2
heads = 2
vocab = 19
max_seq = 9
pattern = ["gptj"]
[residual]
dropout = 0.25
[attention]
dropout = 1.0
[block.gptj]
nodes = [
  { id = "norm1", op = "norm",      in = "x" },
  { id = "attn",  op = "attention", in = "norm1" },
  { id = "ffn",   op = "ffn",       in = "norm1", dropout = 0.5 },
  { id = "half",  op = "residual",  in = ["ffn", "norm1"], scale = 0.5, dropout = 0.5 },
  { id = "out",   op = "residual",  in = ["x", "attn", "half"], scale = 0.5 },
]
)"},
  };
}

}  // namespace tfc::models
