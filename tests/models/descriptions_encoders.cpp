// Encoders.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> encoder_cases() {
  return {
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
  };
}

}  // namespace tfc::models
