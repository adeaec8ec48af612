#include "frontend/keys.h"

#include <array>

namespace tfc::frontend {
namespace {

using enum KeyType;
constexpr double kWide = 1 << 20;              // widths
constexpr double kDeep = 4096;                 // layers
constexpr double kInt32 = 2147483647.0;        // ids, lengths
constexpr double kCount = 9007199254740992.0;  // 2^53: any count that a double holds exactly

constexpr TableInfo kTables[] = {
    {"", "The top level."},
    {"model", "The shape of the model. The only table that must be there."},
    {"embedding", "From ids to vectors."},
    {"position", "How the model knows where a token stands."},
    {"norm", "Norms of the layers, of the embedding and at the end."},
    {"attention", "All attention nodes, unless a block, node or layer says otherwise."},
    {"ffn", "All feed-forward nodes, unless a block, node or layer says otherwise."},
    {"ffn.moe", "A mixture of experts in place of the feed-forward."},
    {"residual", "The sums around attention and feed-forward."},
    {"head", "From the last hidden states to the output, and the loss over it."},
    {"loss", "Settings of cross entropy, of an only head."},
    {"train", "What training touches and how parameters begin."},
    {"train.budget", "Memory that training may own, with `recompute = \"auto\"`."},
    {"train.lora", "Low-rank adapters."},
    {"inputs", "Optional inputs of every call. What is not declared costs nothing."},
    {"shapes", "Sizes fixed when the model is compiled."},
    {"run", "What `transformerc train` does. It is checked always, but no part of the model."},
    {"debug", "What to look at from outside."},
    {"block", "Keys of a `[block.NAME]`."},
    {"layers", "Keys of a `[layers.X]`, `[encoder.layers.X]` or `[decoder.layers.X]`."},
    {"node", "Keys that every node of a written-out block has."},
    {"node.attention", "Keys that attention nodes have besides those of `[attention]`."},
    {"node.linear", "Keys of linear nodes."},
    {"node.activation", "Keys of activation nodes."},
    {"heads", "Keys of a `[head.NAME]`; such tables take the place of `[head]` and `[loss]`, and a model may have several."},
    {"embedding.patches", "Images in place of tokens."},
};

#define HEADS "lm|mlm|classifier|token_classifier|regression|none"
#define POOLS "first|mean|last|none"
#define LOSSES "cross_entropy|binary_cross_entropy|mse|none"
#define ACTIVATIONS "relu|gelu|gelu_tanh|silu|swiglu|geglu|reglu"

// Columns: table, name, type, default, meaning; then what the type needs.
// clang-format off
constexpr Key kKeys[] = {
    {"", "schema", Integer, "1", "version of this language", 1, 1},
    {"", "extends", Text, "none", "a preset, or a description beside this one; the keys here override its keys"},
    {"", "model", Table, "", "", 0, 0, "", "model"},
    {"", "embedding", Table, "", "", 0, 0, "", "embedding"},
    {"", "position", Table, "", "", 0, 0, "", "position"},
    {"", "norm", Table, "", "", 0, 0, "", "norm"},
    {"", "attention", Table, "", "", 0, 0, "", "attention"},
    {"", "ffn", Table, "", "", 0, 0, "", "ffn"},
    {"", "residual", Table, "", "", 0, 0, "", "residual"},
    {"", "head", Table, "", "", 0, 0, "", "head"},
    {"", "loss", Table, "", "", 0, 0, "", "loss"},
    {"", "train", Table, "", "", 0, 0, "", "train"},
    {"", "inputs", Table, "", "", 0, 0, "", "inputs"},
    {"", "shapes", Table, "", "", 0, 0, "", "shapes"},
    {"", "run", Table, "", "", 0, 0, "", "run"},
    {"", "debug", Table, "", "", 0, 0, "", "debug"},
    {"", "block", Table, "", "blocks by name", 0, 0, "", "*"},
    {"", "layers", Table, "", "layers by number or range", 0, 0, "", "*"},
    {"", "encoder", Table, "", "`layers` of the encoder", 0, 0, "", "*"},
    {"", "decoder", Table, "", "`layers` of the decoder", 0, 0, "", "*"},

    {"model", "name", Text, "the file's stem", "prefix of every symbol of the library; letters, digits, `_`"},
    {"model", "kind", Choice, "required", "decoder: causal; encoder: every token sees every token", 0, 0,
     "decoder|encoder|encoder-decoder"},
    {"model", "d_model", Integer, "required", "width D of the hidden states", 1, kWide},
    {"model", "layers", Integer, "required", "number of layers (decoder, encoder)", 1, kDeep},
    {"model", "encoder_layers", Integer, "required", "layers of the encoder (encoder-decoder); 0: the input `memory` takes its place",
     0, kDeep},
    {"model", "decoder_layers", Integer, "required", "layers of the decoder (encoder-decoder); not both are 0", 0, kDeep},
    {"model", "heads", Integer, "required", "attention heads H", 1, kWide},
    {"model", "kv_heads", Integer, "`heads`", "key and value heads G; fewer: grouped-query, 1: multi-query", 1, kWide},
    {"model", "head_dim", Integer, "`d_model / heads`", "width E of a head", 1, kWide},
    {"model", "d_ff", Integer, "`4 * d_model`; gated: `8/3 * d_model` rounded up to `d_ff_multiple`",
     "width F of the feed-forward", 1, kWide},
    {"model", "d_ff_multiple", Integer, "64", "what a gated default of `d_ff` is a multiple of", 1, kWide},
    {"model", "vocab", Integer, "0",
     "vocabulary V; 0: no embedding, no head, positions only where written, inputs and outputs are hidden states "
     "(with `patches` inputs are images)",
     0, kInt32},
    {"model", "src_vocab", Integer, "`vocab`", "encoder-decoder: the source's vocabulary", 0, kInt32},
    {"model", "max_seq", Integer, "no limit", "longest sequence; learned positions need it", 1, kInt32},
    {"model", "dropout", Real, "0.0", "default of the four dropouts", 0, 1},
    {"model", "pattern", Texts, "[]", "names of blocks, repeated until the layers are filled"},
    {"model", "encoder_pattern", Texts, "`pattern`", "encoder-decoder: the encoder's"},
    {"model", "decoder_pattern", Texts, "`pattern`", "encoder-decoder: the decoder's"},

    {"embedding", "tie", Boolean, "true", "the output projection is the (target) token table"},
    {"embedding", "tie_sides", Boolean, "true; false where `src_vocab` differs",
     "encoder-decoder: source and target share their tables"},
    {"embedding", "scale", Choice, "\"none\"", "sqrt_d: token vectors times sqrt(D); never the tied output", 0, 0,
     "none|sqrt_d"},
    {"embedding", "norm", Boolean, "false", "a norm after the sum of embeddings"},
    {"embedding", "types", Integer, "0", "token types (encoder only); 0: none", 0, kInt32},
    {"embedding", "dropout", Real, "`model.dropout`", "after the norm", 0, 1},
    {"embedding", "dim", Integer, "`d_model`", "width N of the tables and their norm; other than `d_model`: a projection `emb_proj` follows", 1, kWide},
    {"embedding", "patches", Table, "none", "images in place of tokens (encoder only)", 0, 0, "",
     "embedding.patches"},
    {"embedding", "class_token", Boolean, "false", "a learned token before the patches"},
    {"embedding.patches", "size", Integer, "required", "pixels on a side; divides height and width", 1, 65536},
    {"embedding.patches", "image", Integers, "required", "channels, height, width", 1, 65536},

    {"position", "type", Choice, "\"learned\"; \"none\" where inputs are hidden states",
     "learned: a table; sinusoidal: even columns sin, odd cos; rope: rotated queries and keys of self-attention; alibi: "
     "scores of self-attention fall by slope times distance, two-way in encoders",
     0, 0, "learned|sinusoidal|rope|alibi|none"},
    {"position", "rope_theta", Real, "10000.0", "base of the angles", 0, 1e30, "", "", true},
    {"position", "rope_style", Choice, "\"half\"", "half: pairs (i, i + E/2); interleaved: pairs (2i, 2i + 1)", 0, 0,
     "half|interleaved"},

    {"norm", "type", Choice, "\"layernorm\"", "", 0, 0, "layernorm|rmsnorm"},
    {"norm", "placement", Choice, "\"pre\"",
     "where an ordinary layer has its norms; auto: by a rule on the description, a remark gives the reason", 0, 0,
     "pre|post|sandwich|auto"},
    {"norm", "eps", Real, "1e-5", "added to the variance", 0, 1, "", "", true},
    {"norm", "bias", Boolean, "true; rmsnorm: false", "layernorm only"},
    {"norm", "final", Boolean, "true; post: false; auto: as placed", "a norm at the end of the stack"},

    {"attention", "bias", Boolean, "true", "biases of all four projections"},
    {"attention", "qkv_bias", Boolean, "`bias`", "of queries, keys, values"},
    {"attention", "o_bias", Boolean, "`bias`", "of the output projection"},
    {"attention", "window", Integer, "0",
     "N > 0: a token sees itself and the N-1 before it, in encoders too; self-attention only", 0, kInt32},
    {"attention", "window_after", Integer, "0", "encoders with a window: a token sees the N after it too", 0, kInt32},
    {"attention", "scale", Real, "1/sqrt(E)", "factor on the scores", 0, 1e6, "", "", true},
    {"attention", "prefix", Boolean, "false",
     "decoders: two-way self-attention inside each row's prefix, with a window as far ahead as it goes back; needs "
     "`inputs.prefix`"},
    {"attention", "dropout", Real, "`model.dropout`", "of the attention weights", 0, 1},

    {"ffn", "activation", Choice, "\"gelu\"", "gelu: by erf; gated: swiglu, geglu (erf), reglu", 0, 0, ACTIVATIONS},
    {"ffn", "bias", Boolean, "true", "biases of all its projections"},
    {"ffn", "dropout", Real, "`model.dropout`", "after the activation", 0, 1},
    {"ffn", "moe", Table, "none", "a mixture of experts in place of the feed-forward", 0, 0, "", "ffn.moe"},
    {"ffn.moe", "experts", Integer, "required", "number of experts X, each of width `d_ff`; 0: an ordinary feed-forward", 0, 65536},
    {"ffn.moe", "top_k", Integer, "2", "experts that see a token, at most `experts`", 1, 65536},
    {"ffn.moe", "renormalize", Boolean, "true",
     "the chosen experts' weights sum to 1: a softmax over them alone; false: their part of the softmax over all"},
    {"ffn.moe", "aux_loss", Real, "0.0", "factor of the balancing loss, a part of the loss; 0: none", 0, 1e6},
    {"ffn.moe", "capacity", Real, "0.0",
     "an expert takes at most ceil(capacity * tokens * top_k / experts) choices of a call; 0: no token is dropped", 0, 1e6},

    {"residual", "scale", Real, "1.0", "factor on what is added", -1e6, 1e6},
    {"residual", "gamma", Real, "none", "LayerScale: a factor for each column of what is added, learned, which begins at this", 0, 1e6},
    {"residual", "dropout", Real, "`model.dropout`", "of each sub-layer's output before it is added", 0, 1},

    {"head", "type", Choice, "\"lm\"; \"none\" where `vocab` is 0",
     "lm: logits over the vocabulary; mlm: the same after a transform, gelu and a norm; classifier: one answer for a "
     "row; token_classifier: one for each token; regression: numbers; none: hidden states",
     0, 0, HEADS},
    {"head", "bias", Boolean, "false; mlm: true", "of the output projection"},
    {"head", "classes", Integer, "required by classifiers; regression: 1", "number of classes or, of regression, numbers", 1,
     kInt32},
    {"head", "pool", Choice, "\"first\"; decoder: \"last\"",
     "classifier, regression: the tokens that it looks at; none: regression for each token", 0, 0, POOLS},
    {"head", "loss", Choice, "\"cross_entropy\"; regression: \"mse\"",
     "binary_cross_entropy: classifiers whose classes are apart; none: outputs alone", 0, 0, LOSSES},
    {"heads", "type", Choice, "required", "as in `[head]`", 0, 0, HEADS},
    {"heads", "from", Text, "the end of the stack, after its norm", "layer whose output it reads: \"layers.3\", \"layers.-2\", "
     "\"decoder.layers.1\", \"encoder.layers.0\""},
    {"heads", "bias", Boolean, "false; mlm: true", "of the output projection"},
    {"heads", "tie", Boolean, "`embedding.tie`", "lm, mlm: the output projection is the token table"},
    {"heads", "classes", Integer, "required by classifiers; regression: 1", "as in `[head]`", 1, kInt32},
    {"heads", "pool", Choice, "\"first\"; decoder: \"last\"", "as in `[head]`", 0, 0, POOLS},
    {"heads", "loss", Choice, "\"cross_entropy\"; regression: \"mse\"; none: \"none\"", "as in `[head]`", 0, 0, LOSSES},
    {"heads", "loss_weight", Real, "1.0", "factor on its mean loss in the sum that is minimised", 0, 1e6},
    {"heads", "ignore_index", Integer, "-100", "as in `[loss]`", -kInt32 - 1, kInt32},
    {"heads", "label_smoothing", Real, "0.0", "as in `[loss]`", 0, 1},

    {"loss", "ignore_index", Integer, "-100", "a target that does not count", -kInt32 - 1, kInt32},
    {"loss", "label_smoothing", Real, "0.0", "e: (1-e) * nll + e/V * sum(-log p)", 0, 1},

    {"train", "freeze", TextOrTexts, "[]", "what does not move: parts (\"embedding\", \"layers.0-5\", \"final_norm\", \"head\"), or parameters by a glob"},
    {"train", "init", Choice, "\"normal\"",
     "normal: std init_std, biases 0; gpt2: and o, down by 1/sqrt(2L); xavier: as nn.Transformer; torch: as nn.Linear "
     "and nn.MultiheadAttention",
     0, 0, "normal|gpt2|xavier|torch"},
    {"train", "init_std", Real, "0.02", "standard deviation (normal, gpt2)", 0, 1e3},
    {"train", "zero_init", Boolean, "false", "o and down, with which branches end, begin at zero: a layer of `pre` begins as the identity"},
    {"train", "recompute", Choice, "\"none\"",
     "what the backward computes again instead of keeping it: none: what costs next to nothing; all: every layer; "
     "auto: as many layers as the budget needs",
     0, 0, "none|all|auto"},
    {"train", "budget", Table, "required by auto", "the budget", 0, 0, "", "train.budget"},
    {"train", "lora", Table, "none", "low-rank adapters, which alone are trained", 0, 0, "", "train.lora"},
    {"train.lora", "rank", Integer, "required", "r; 0: no adapters", 0, kWide},
    {"train.lora", "alpha", Real, "`rank`", "an adapter counts `alpha / rank`", 0, 1e6, "", "", true},
    {"train.lora", "targets", TextOrTexts, "[\"q\", \"v\"]", "weights beside which adapters are put: ends of their names (\"q\", \"attn.o\"), or globs of them"},
    {"train.budget", "bytes", Text, "required",
     "\"2GiB\", \"1.5GB\": parameters, gradients, moments and workspace together"},
    {"train.budget", "batch", Integer, "required", "at this batch", 1, kInt32},
    {"train.budget", "seq", Integer, "required", "and this length", 1, kInt32},

    {"inputs", "mask", Boolean, "true; false with `patches`", "[B,T], and a source mask [B,S]; true: a real token"},
    {"inputs", "lengths", Boolean, "false", "[B], in place of mask"},
    {"inputs", "positions", Boolean, "false",
     "[B,T], and source positions [B,S]; not given in a call: indices in the row"},
    {"inputs", "documents", Boolean, "false",
     "[B,T], and source documents [B,S]: tokens of different documents do not see each other, and target tokens only "
     "source tokens of their own; not given in a call: one document"},
    {"inputs", "prefix", Boolean, "false", "[B]: lengths of the two-way prefixes; not given in a call: 0"},
    {"inputs", "weights", Boolean, "false", "[B,T], of a head with a row for a sequence [B]: weight of each target; mean losses divide by their sum"},

    {"shapes", "batch", Integer, "free", "B", 1, kInt32},
    {"shapes", "seq", Integer, "free", "T", 1, kInt32},
    {"shapes", "src_seq", Integer, "free", "S (encoder-decoder)", 1, kInt32},

    {"run", "task", Choice, "\"text\" where there is data, else \"reverse\"",
     "text: bytes of a file as tokens; reverse: reverse random sequences", 0, 0, "text|reverse"},
    {"run", "data", Text, "required by text", "path of the file, from the folder of the description"},
    {"run", "steps", Integer, "1000", "text: optimizer steps", 1, kCount},
    {"run", "epochs", Integer, "20", "reverse", 1, kInt32},
    {"run", "examples", Integer, "2000", "reverse: training sequences in an epoch", 1, kInt32},
    {"run", "length", Integer, "8", "reverse: of the sequences", 1, kInt32},
    {"run", "batch", Integer, "32", "sequences in a batch", 1, kInt32},
    {"run", "seq", Integer, "`max_seq`, at most 256", "text: tokens in a window", 1, kInt32},
    {"run", "accumulate", Integer, "1", "batches in a step", 1, kInt32},
    {"run", "lr", Real, "1e-3", "learning rate", 0, 1e6},
    {"run", "min_lr", Real, "0.0", "where linear and cosine end", 0, 1e6},
    {"run", "warmup", Integer, "0", "steps from 0 to lr", 0, kCount},
    {"run", "schedule", Choice, "\"constant\"", "after the warm-up", 0, 0, "constant|linear|cosine"},
    {"run", "betas", Reals, "[0.9, 0.999]", "of AdamW", 0, 1},
    {"run", "eps", Real, "1e-8", "of AdamW", 0, 1e6},
    {"run", "weight_decay", Real, "0.0", "of AdamW, on parameters of rank 2 and more", 0, 1e6},
    {"run", "clip", Real, "1.0", "greatest norm of the gradient; 0: off", 0, 1e30},
    {"run", "seed", Integer, "0", "of parameters, data and sample", 0, kCount},
    {"run", "threads", Integer, "0", "0: all cores", 0, 1024},
    {"run", "validation", Real, "0.1", "share of the data that is held back", 0, 0.9},
    {"run", "report", Integer, "100", "text: steps between two lines of output", 1, kCount},
    {"run", "sample", Integer, "200", "text: bytes generated at the end", 0, kInt32},
    {"run", "prompt", Text, "\"\\n\"", "text: what the sample begins with"},
    {"run", "temperature", Real, "0.8", "of the sample", 0, 1e6},
    {"run", "top_k", Integer, "0", "of the sample; 0: off", 0, kInt32},

    {"debug", "taps", TextOrTexts, "[]", "values that a call leaves to look at, by globs of their names: \"layers.0.attn.weights\", \"layers.*.ffn.act\""},
    {"debug", "edits", TextOrTexts, "[]", "values that a caller may replace or add to on their way, by such globs: \"layers.*.attn\""},

    {"block", "nodes", Nodes, "the ordinary block", "the block written out; `x` is its input, the last node its output"},
    {"block", "attention", Table, "", "overrides of `[attention]`", 0, 0, "", "layer.attention"},
    {"block", "ffn", Table, "", "overrides of `[ffn]`", 0, 0, "", "layer.ffn"},
    {"block", "norm", Table, "", "overrides of `[norm]`", 0, 0, "", "layer.norm"},
    {"block", "residual", Table, "", "overrides of `[residual]`", 0, 0, "", "layer.residual"},
    {"block", "shared", Boolean, "false", "one set of weights for all its layers, `blocks.NAME.*`"},
    {"layers", "attention", Table, "", "overrides of `[attention]`", 0, 0, "", "layer.attention"},
    {"layers", "ffn", Table, "", "overrides of `[ffn]`", 0, 0, "", "layer.ffn"},
    {"layers", "norm", Table, "", "overrides of `[norm]`", 0, 0, "", "layer.norm"},
    {"layers", "residual", Table, "", "overrides of `[residual]`", 0, 0, "", "layer.residual"},

    {"node", "id", Text, "required", "its name, part of its parameters' names"},
    {"node", "op", Choice, "required", "", 0, 0, "attention|ffn|norm|residual|linear|activation|multiply"},
    {"node", "in", TextOrTexts, "required", "ids of the nodes that it reads; `x`: the block's input"},
    {"node.attention", "source", Choice, "\"x\"", "memory: keys and values from the encoder's output", 0, 0,
     "x|memory"},
    {"node.linear", "out", Integer, "`d_model`", "width of its result", 1, kWide},
    {"node.linear", "bias", Boolean, "true", ""},
    {"node.activation", "kind", Choice, "\"gelu\"", "", 0, 0, "relu|gelu|gelu_tanh|silu"},
};

// clang-format on

constexpr std::array<std::string_view, 7> kNodeOps = {"attention", "ffn",        "norm",    "residual",
                                                      "linear",    "activation", "multiply"};

void append(std::vector<const Key*>& list, std::string_view table,
            std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) list.push_back(find_key(table, name));
}

void append_all(std::vector<const Key*>& list, std::string_view table) {
  for (const Key* key : keys_of(table)) list.push_back(key);
}

/// The options of attention, ffn, norm or residual within a block, layer or node.
void append_options(std::vector<const Key*>& list, std::string_view op) {
  if (op == "norm") {
    append(list, "norm", {"type", "eps", "bias"});
    return;
  }
  append_all(list, op);
  if (op == "attention") append(list, "model", {"heads", "kv_heads", "head_dim"});
  if (op == "ffn") append(list, "model", {"d_ff", "d_ff_multiple"});
}

}  // namespace

std::span<const Key> all_keys() { return kKeys; }
std::span<const TableInfo> all_tables() { return kTables; }
std::span<const std::string_view> node_ops() { return kNodeOps; }

const Key* find_key(std::string_view table, std::string_view name) {
  for (const Key& key : kKeys)
    if (key.table == table && key.name == name) return &key;
  return nullptr;
}

std::vector<const Key*> keys_of(std::string_view table) {
  std::vector<const Key*> keys;
  for (const Key& key : kKeys)
    if (key.table == table) keys.push_back(&key);
  return keys;
}

std::vector<const Key*> keys_in(std::string_view context) {
  std::vector<const Key*> keys;
  if (context.starts_with("layer.")) {
    const std::string_view op = context.substr(6);
    append_options(keys, op);
    if (op == "norm") append(keys, "norm", {"placement"});
    return keys;
  }
  if (!context.starts_with("node.")) return keys_of(context);
  const std::string_view op = context.substr(5);
  append_all(keys, "node");
  append_all(keys, context);
  if (op == "attention" || op == "ffn" || op == "norm" || op == "residual") append_options(keys, op);
  return keys;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

}  // namespace tfc::frontend
