// Heads and losses.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> head_cases() {
  return {
      {"mlm_tied", 3, 17, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 1
heads = 1
d_ff = 15
vocab = 33
max_seq = 33
[embedding]
norm = true
[norm]
placement = "post"
[head]
type = "mlm"
)"},
      {"mlm_untied", 1, 15, 0, R"(
[model]
kind = "encoder"
d_model = 8
layers = 1
heads = 2
vocab = 5
[position]
type = "rope"
[embedding]
tie = false
[norm]
type = "rmsnorm"
[head]
type = "mlm"
bias = false
[loss]
label_smoothing = 0.1
ignore_index = 2
[inputs]
weights = true
)"},
      {"token_classifier", 3, 5, 0, R"(
[model]
kind = "encoder"
d_model = 12
layers = 1
heads = 3
vocab = 7
max_seq = 9
[head]
type = "token_classifier"
classes = 17
bias = true
)"},
      // A tagger that reads from left to right: it decodes.
      {"tagger", 2, 9, 0, R"(
[model]
kind = "decoder"
d_model = 12
layers = 1
heads = 3
vocab = 7
max_seq = 9
[head]
type = "token_classifier"
classes = 3
loss = "binary_cross_entropy"
)"},
      {"regression", 5, 3, 0, R"(
[model]
kind = "decoder"
d_model = 9
layers = 1
heads = 3
vocab = 5
max_seq = 5
[head]
type = "regression"
bias = true
)"},
      {"regression_weighted", 3, 7, 0, R"(
[model]
kind = "encoder"
d_model = 16
layers = 1
heads = 4
[head]
type = "regression"
classes = 17
pool = "none"
[inputs]
weights = true
)"},
      {"tags_weighted", 5, 4, 0, R"(
[model]
kind = "encoder"
d_model = 10
layers = 1
heads = 2
vocab = 9
max_seq = 9
[head]
type = "classifier"
classes = 16
pool = "mean"
loss = "binary_cross_entropy"
[inputs]
lengths = true
weights = true
)"},
      {"lm_weighted", 3, 9, 0, R"(
[model]
kind = "decoder"
d_model = 16
layers = 1
heads = 4
vocab = 19
max_seq = 31
[loss]
label_smoothing = 0.2
[inputs]
weights = true
)"},
      {"bert_pretraining", 3, 11, 0, R"(
[model]
kind = "encoder"
d_model = 15
layers = 2
heads = 3
d_ff = 31
vocab = 29
max_seq = 16
[embedding]
types = 2
norm = true
[norm]
placement = "post"
[head.mlm]
type = "mlm"
[head.nsp]
type = "classifier"
classes = 2
bias = true
)"},
      {"all_heads", 4, 6, 0, R"(
[model]
kind = "decoder"
d_model = 12
layers = 3
heads = 3
vocab = 17
max_seq = 9
[head.next]
type = "lm"
loss_weight = 0.5
label_smoothing = 0.1
[head.second]
type = "token_classifier"
from = "layers.0"
classes = 3
ignore_index = 1
[head.score]
type = "regression"
from = "layers.1"
classes = 2
loss_weight = 2.0
[head.tags]
type = "classifier"
from = "layers.-1"
classes = 5
pool = "mean"
loss = "binary_cross_entropy"
[head.states]
type = "none"
from = "layers.0"
[head.silent]
type = "classifier"
classes = 4
loss = "none"
[inputs]
weights = true
)"},
      // One that has a name, in a pair.
      {"named_pair", 2, 5, 3, R"(
[model]
kind = "encoder-decoder"
d_model = 8
encoder_layers = 1
decoder_layers = 2
heads = 2
vocab = 11
max_seq = 9
[head.words]
type = "lm"
tie = false
loss_weight = 3.0
[head.length]
type = "regression"
from = "decoder.layers.0"
)"},
      {"heads_on_the_encoder", 3, 5, 4, R"(
[model]
kind = "encoder-decoder"
d_model = 12
encoder_layers = 2
decoder_layers = 1
heads = 3
vocab = 11
src_vocab = 13
max_seq = 9
[embedding]
dim = 5
[head.masked]
type = "mlm"
from = "encoder.layers.-1"
[head.words]
type = "lm"
[head.topic]
type = "classifier"
classes = 3
from = "encoder.layers.0"
pool = "mean"
loss_weight = 0.5
[head.tags]
type = "token_classifier"
classes = 2
from = "encoder.layers.0"
loss = "binary_cross_entropy"
[inputs]
weights = true
)"},
      // What the source's tokens are tied to is its own table.
      {"source_words_alone", 2, 3, 7, R"(
[model]
kind = "encoder-decoder"
d_model = 9
encoder_layers = 1
decoder_layers = 1
heads = 3
vocab = 11
max_seq = 9
[head.same]
type = "lm"
from = "encoder.layers.0"
[head.score]
type = "regression"
[inputs]
lengths = true
)"},
  };
}

}  // namespace tfc::models
