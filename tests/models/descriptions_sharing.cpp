// Shared blocks, narrow tables, LayerScale, parallel branches, adapters.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> sharing_cases() {
  return {
      {"albert", 3, 9, 0, R"(
[model]
kind = "encoder"
d_model = 33
layers = 3
heads = 3
vocab = 31
max_seq = 17
pattern = ["albert"]
[block.albert]
shared = true
[embedding]
dim = 7
types = 2
norm = true
[norm]
placement = "post"
[head]
type = "classifier"
classes = 3
)"},
      {"mlm_of_narrow_tables", 2, 7, 0, R"(
[model]
kind = "encoder"
d_model = 18
layers = 2
heads = 2
vocab = 17
max_seq = 9
pattern = ["albert"]
[block.albert]
shared = true
[embedding]
dim = 5
types = 2
norm = true
[norm]
placement = "post"
[head]
type = "mlm"
)"},
      {"shared_in_turns", 2, 15, 0, R"(
[model]
kind = "decoder"
d_model = 18
layers = 5
heads = 3
kv_heads = 1
vocab = 23
max_seq = 17
pattern = ["a", "b"]
[embedding]
dim = 31
[position]
type = "rope"
[block.a]
shared = true
ffn = { activation = "swiglu" }
[block.b]
shared = true
attention = { kv_heads = 3 }
residual = { gamma = 0.3 }
[head]
bias = true
)"},
      {"shared_pair", 2, 5, 7, R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 2
decoder_layers = 3
heads = 3
d_ff = 17
vocab = 17
src_vocab = 13
max_seq = 9
pattern = ["one"]
[embedding]
dim = 5
norm = true
[block.one]
shared = true
[train]
freeze = ["encoder.blocks.one"]
)"},
      {"shared_pair_in_turns", 2, 7, 5, R"(
[model]
kind = "encoder-decoder"
d_model = 17
encoder_layers = 1
decoder_layers = 5
heads = 2
head_dim = 4
vocab = 15
max_seq = 9
dropout = 0.2
decoder_pattern = ["a", "b"]
[position]
type = "rope"
[block.a]
shared = true
attention = { kv_heads = 1 }
[block.b]
shared = true
nodes = [
  { id = "norm", op = "norm", in = "x" },
  { id = "own", op = "attention", in = "norm" },
  { id = "first", op = "attention", in = "norm", source = "memory" },
  { id = "second", op = "attention", in = "own", source = "memory", qkv_bias = false },
  { id = "ffn", op = "ffn", in = "second", activation = "swiglu" },
  { id = "out", op = "residual", in = ["x", "first", "ffn"] },
]
[train]
init = "torch"
lora = { rank = 2, targets = ["k", "ffn.gate"] }
)"},
      {"shared_memory_input", 2, 5, 3, R"(
[model]
kind = "encoder-decoder"
d_model = 9
encoder_layers = 0
decoder_layers = 3
heads = 3
pattern = ["one"]
[block.one]
shared = true
[train]
recompute = "all"
)"},
      {"layer_scale_sandwich", 1, 17, 0, R"(
[model]
kind = "decoder"
d_model = 31
layers = 2
heads = 1
vocab = 17
max_seq = 33
[norm]
placement = "sandwich"
type = "rmsnorm"
[residual]
gamma = 1e-2
scale = 0.7
)"},
      {"layer_scale_of_itself", 1, 5, 0, R"(
[model]
kind = "encoder"
d_model = 15
layers = 2
heads = 3
pattern = ["twice"]
[block.twice]
nodes = [
  { id = "norm", op = "norm", in = "x" },
  { id = "up", op = "linear", in = "norm" },
  { id = "out", op = "residual", in = ["up", "up"], gamma = 0.5 },
]
)"},
      {"layer_scale_recomputed", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 3
heads = 1
[residual]
gamma = 0.5
[train]
recompute = "all"
)"},
      {"parallel_three", 2, 6, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
vocab = 15
max_seq = 17
pattern = ["three"]
[block.three]
nodes = [
  { id = "norm1", op = "norm", in = "x" },
  { id = "attn", op = "attention", in = "norm1" },
  { id = "ffn", op = "ffn", in = "norm1", activation = "swiglu" },
  { id = "other", op = "linear", in = "norm1" },
  { id = "out", op = "residual", in = ["x", "attn", "ffn", "other"], scale = 0.5 },
]
)"},
      {"lora_of_decoder", 2, 7, 0, R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 3
kv_heads = 1
vocab = 31
max_seq = 17
[ffn]
activation = "swiglu"
[train.lora]
rank = 3
alpha = 6
targets = ["q", "v", "layers.1.ffn.*"]
)"},
      {"lora_of_classifier", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 2
heads = 1
vocab = 31
max_seq = 5
pattern = ["one"]
[block.one]
shared = true
[norm]
placement = "post"
[head]
type = "classifier"
classes = 3
[train]
zero_init = true
lora = { rank = 1, targets = "o" }
)"},
  };
}

}  // namespace tfc::models
