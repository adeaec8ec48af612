// Mixtures of experts. Widths and numbers of experts are odd; the balancing loss is checked by its gradients too.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> moe_cases() {
  return {
      {"mixtral", 2, 17, 0, R"(
[model]
kind = "decoder"
d_model = 34
layers = 2
heads = 4
kv_heads = 2
head_dim = 6
d_ff = 33
vocab = 31
[position]
type = "rope"
[norm]
type = "rmsnorm"
[attention]
bias = false
[ffn]
activation = "swiglu"
bias = false
moe = { experts = 5, top_k = 2, aux_loss = 0.02 }
)"},
      {"switch_decoder", 3, 15, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
d_ff = 45
vocab = 31
max_seq = 33
[ffn]
moe = { experts = 3, top_k = 1, renormalize = false, aux_loss = 0.1 }
[layers.0]
ffn = { moe = { experts = 0 } }
)"},
      {"experts_of_an_encoder", 3, 9, 0, R"(
[model]
kind = "encoder"
d_model = 18
layers = 2
heads = 3
d_ff = 17
[norm]
placement = "post"
[ffn]
activation = "geglu"
[ffn.moe]
experts = 4
top_k = 4
renormalize = false
)"},
      {"experts_in_a_pair", 2, 7, 5, R"(
[model]
kind = "encoder-decoder"
d_model = 18
encoder_layers = 1
decoder_layers = 2
heads = 3
d_ff = 23
vocab = 19
max_seq = 9
[ffn]
activation = "relu"
[ffn.moe]
experts = 3
top_k = 2
aux_loss = 0.01
)"},
      {"experts_in_nodes", 2, 11, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 3
heads = 1
d_ff = 15
vocab = 13
max_seq = 16
pattern = ["sparse", "dense"]
[block.sparse]
nodes = [
  { id = "norm", op = "norm", in = "x" },
  { id = "attn", op = "attention", in = "norm" },
  { id = "experts", op = "ffn", in = "norm", activation = "reglu", moe = { experts = 3, top_k = 2 } },
  { id = "always", op = "ffn", in = "norm", d_ff = 9 },
  { id = "out", op = "residual", in = ["x", "attn", "experts", "always"] },
]
[block.dense]
ffn = { d_ff = 31 }
)"},
      {"experts_frozen_in_part", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 3
heads = 1
d_ff = 15
vocab = 13
max_seq = 16
[ffn]
moe = { experts = 3, top_k = 2, aux_loss = 0.01 }
[train]
freeze = ["embedding", "layers.0", "layers.1.ffn.router", "layers.2.ffn.experts", "layers.1.ffn.experts.*.down.*"]
)"},
      {"experts_again", 2, 17, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
d_ff = 45
vocab = 31
max_seq = 33
[ffn]
activation = "swiglu"
moe = { experts = 4, aux_loss = 0.01 }
[train]
recompute = "all"
)"},
      // Of a call with fewer tokens an expert takes fewer: decoding is another thing then.
      {"capacity_of_a_decoder", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 16
layers = 2
heads = 2
d_ff = 15
vocab = 13
max_seq = 9
[ffn]
moe = { experts = 3, top_k = 1, renormalize = false, capacity = 0.7 }
[train]
init = "torch"
)"},
      // The balance is a part of the first loss that counts, wherever its head stands.
      {"balance_beside_heads", 3, 7, 0, R"(
[model]
kind = "decoder"
d_model = 17
layers = 3
heads = 1
d_ff = 15
vocab = 13
max_seq = 9
[ffn]
moe = { experts = 3, top_k = 1, renormalize = false, aux_loss = 0.1 }
[head.silent]
type = "classifier"
classes = 3
loss_weight = 0.0
[head.score]
type = "regression"
from = "layers.0"
loss_weight = 0.5
[head.next]
type = "lm"
)"},
      {"balance_of_a_named_head", 2, 7, 0, R"(
[model]
kind = "decoder"
d_model = 18
layers = 2
heads = 3
vocab = 13
max_seq = 9
[ffn]
moe = { experts = 4, aux_loss = 0.2 }
[head.next]
type = "lm"
loss_weight = 3.0
[inputs]
weights = true
)"},
  };
}

}  // namespace tfc::models
