// The forward result of a row is the same bits alone, in any batch, padded on the right, and token by token
// through the cache.
#include "models/rows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tfc::models {
namespace {

struct Kind {
  const char* name;
  ir::DType precision;
  const char* cpu;
  const char* description;
};

const char* const kRope = R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 6
kv_heads = 2
head_dim = 6
d_ff = 70
vocab = 61
max_seq = 40
[position]
type = "rope"
[norm]
type = "rmsnorm"
[ffn]
activation = "swiglu"
)";

const char* const kLearned = R"(
[model]
kind = "decoder"
d_model = 40
layers = 2
heads = 5
vocab = 33
max_seq = 40
)";

const char* const kSinusoidal = R"(
[model]
kind = "decoder"
d_model = 31
layers = 1
heads = 1
kv_heads = 1
d_ff = 140
vocab = 17
max_seq = 40
[position]
type = "sinusoidal"
[norm]
placement = "post"
[head]
bias = true
)";

const char* const kPair = R"(
[model]
kind = "encoder-decoder"
d_model = 36
encoder_layers = 2
decoder_layers = 2
heads = 4
kv_heads = 2
d_ff = 65
vocab = 31
max_seq = 40
)";

const char* const kMemory = R"(
[model]
kind = "encoder-decoder"
d_model = 15
encoder_layers = 0
decoder_layers = 1
heads = 3
head_dim = 10
vocab = 17
max_seq = 40
[position]
type = "rope"
rope_style = "interleaved"
)";

const char* const kEncoder = R"(
[model]
kind = "encoder"
d_model = 33
layers = 2
heads = 3
vocab = 31
max_seq = 40
[embedding]
types = 2
[norm]
placement = "sandwich"
)";

const char* const kPooled = R"(
[model]
kind = "encoder"
d_model = 17
layers = 1
heads = 1
[head]
type = "classifier"
classes = 5
pool = "mean"
)";

const char* const kFloats = R"(
[model]
kind = "decoder"
d_model = 17
layers = 2
heads = 1
max_seq = 40
)";

/// With grouped heads; shorter than most rows, so that its ring turns.
const char* const kWindow = R"(
[model]
kind = "decoder"
d_model = 33
layers = 2
heads = 6
kv_heads = 2
head_dim = 6
d_ff = 70
vocab = 61
[position]
type = "rope"
[attention]
window = 7
)";

const char* const kAlibi = R"(
[model]
kind = "decoder"
d_model = 35
layers = 2
heads = 5
vocab = 33
[position]
type = "alibi"
[layers.1]
attention = { window = 9 }
)";

const char* const kPacked = R"(
[model]
kind = "decoder"
d_model = 34
layers = 2
heads = 3
head_dim = 17
vocab = 33
max_seq = 90
[inputs]
documents = true
positions = true
[layers.1]
attention = { window = 11 }
)";

const char* const kPackedPair = R"(
[model]
kind = "encoder-decoder"
d_model = 36
encoder_layers = 1
decoder_layers = 2
heads = 4
vocab = 31
[position]
type = "alibi"
[attention]
window = 12
window_after = 5
[inputs]
documents = true
positions = true
)";

const char* const kPackedEncoder = R"(
[model]
kind = "encoder"
d_model = 33
layers = 2
heads = 3
vocab = 31
[position]
type = "sinusoidal"
[attention]
window = 6
window_after = 6
[inputs]
documents = true
positions = true
)";

const char* const kExperts = R"(
[model]
kind = "decoder"
d_model = 34
layers = 2
heads = 2
d_ff = 40
vocab = 31
max_seq = 40
[ffn]
activation = "swiglu"
moe = { experts = 5, top_k = 2 }
)";

constexpr auto kF32 = ir::DType::F32, kF64 = ir::DType::F64;

const Kind kKinds[] = {
    {"rope_v2", kF32, "x86-64-v2", kRope},
    {"rope_v3", kF32, "x86-64-v3", kRope},
    {"rope_v4", kF32, "x86-64-v4", kRope},
    {"rope_double", kF64, "x86-64-v3", kRope},
    {"learned", kF32, "x86-64-v3", kLearned},
    {"learned_double", kF64, "x86-64-v4", kLearned},
    {"sinusoidal", kF32, "x86-64-v4", kSinusoidal},
    {"sinusoidal_double", kF64, "x86-64-v2", kSinusoidal},
    {"pair", kF32, "x86-64-v3", kPair},
    {"pair_double", kF64, "x86-64-v3", kPair},
    {"memory", kF32, "x86-64-v3", kMemory},
    {"encoder", kF32, "x86-64-v3", kEncoder},
    {"encoder_double", kF64, "x86-64-v4", kEncoder},
    {"experts", kF32, "x86-64-v4", kExperts},
    {"experts_double", kF64, "x86-64-v2", kExperts},
    {"pooled", kF32, "x86-64-v3", kPooled},
    {"floats", kF32, "x86-64-v3", kFloats},
    {"window", kF32, "x86-64-v4", kWindow},
    {"window_double", kF64, "x86-64-v3", kWindow},
    {"alibi", kF32, "x86-64-v3", kAlibi},
    {"packed", kF32, "x86-64-v4", kPacked},
    {"packed_double", kF64, "x86-64-v2", kPacked},
    {"packed_pair", kF32, "x86-64-v3", kPackedPair},
    {"packed_encoder", kF32, "x86-64-v4", kPackedEncoder},
};

constexpr int64_t kT = 33, kS = 29;
const std::vector<int64_t> kLengths = {17, 1, 33, 9, 32, 5, 16, 2};
const std::vector<int64_t> kSourceLengths = {3, 29, 16, 1, 17, 28, 8, 5};

class Rows : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const Kind& kind = GetParam();
    if (!runs_here(kind.cpu)) GTEST_SKIP() << "this machine has no " << kind.cpu;
    compiled_ = compile(kind.description, {.precision = kind.precision, .cpu = kind.cpu});
    session_ = std::make_unique<Session>(compiled_);
    const auto rows = static_cast<int64_t>(kLengths.size());
    inputs_ = tools::random_inputs(compiled_.joint, point_for(compiled_.joint, rows, kT, kS), 5, false);
  }

  bool classifies() const { return session_->info.head == TC_HEAD_CLASSIFIER; }

  /// Rows by number with their lengths, in a batch of T and S tokens.
  Call call_of(const std::vector<int64_t>& rows, int64_t T, int64_t S) const {
    tools::Inputs inputs = select(inputs_, rows, T, S);
    std::vector<int64_t> lengths, source_lengths;
    for (const int64_t row : rows) {
      lengths.push_back(kLengths[static_cast<size_t>(row)]);
      source_lengths.push_back(kSourceLengths[static_cast<size_t>(row)]);
    }
    set_mask(inputs, "mask", lengths);
    set_mask(inputs, "src_mask", source_lengths);
    return {*session_, inputs, point_for(compiled_.joint, static_cast<int64_t>(rows.size()), T, S)};
  }

  /// What forward says of row b of a call: of its real tokens alone.
  Bytes answer(const Bytes& array, int64_t B, int64_t b, int64_t T, int64_t row) const {
    return classifies() ? tokens_of(array, B, b, 1, 1)
                        : tokens_of(array, B, b, kLengths[static_cast<size_t>(row)], T);
  }

  void expect_row(const Bytes& alone, const std::vector<int64_t>& rows, size_t b, int64_t T, int64_t S) {
    const Call call = call_of(rows, T, S);
    const Bytes together = session_->forward(call);
    EXPECT_TRUE(answer(together, static_cast<int64_t>(rows.size()), static_cast<int64_t>(b), T, rows[b]) ==
                alone)
        << "row " << rows[b] << " among " << rows.size() << " at T=" << T << " S=" << S;
  }

  Bytes alone(int64_t row) {
    const int64_t T = kLengths[static_cast<size_t>(row)];
    return session_->forward(call_of({row}, T, kSourceLengths[static_cast<size_t>(row)]));
  }

  void alone_in_a_batch_and_padded();
  void logprobs_and_last();
  void through_the_cache_in_several_splits();

  Compiled compiled_;
  std::unique_ptr<Session> session_;
  tools::Inputs inputs_;
};

void Rows::alone_in_a_batch_and_padded() {
  const std::vector<int64_t> some = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int64_t> many;  // more rows than a product takes in one block
  for (int repeat = 0; repeat < 5; ++repeat) many.insert(many.end(), some.rbegin(), some.rend());
  for (int64_t row = 0; row < 8; ++row) {
    const Bytes expected = alone(row);
    const size_t place = static_cast<size_t>(row);
    expect_row(expected, {row}, 0, kT, kS);
    expect_row(expected, {row, 2, row}, 2, 40, 40);
    expect_row(expected, some, place, kT, kS);
    expect_row(expected, many, 39 - place, kT, kS);
  }
}

void Rows::logprobs_and_last() {
  for (int64_t row = 0; row < 8; ++row) {
    const int64_t length = kLengths[static_cast<size_t>(row)];
    const Call alone = call_of({row}, length, kSourceLengths[static_cast<size_t>(row)]);
    const Call among = call_of({3, row, 2}, 37, 31);
    if (compiled_.has("logprobs")) {
      EXPECT_TRUE(answer(session_->logprobs(among), 3, 1, 37, row) == session_->logprobs(alone)) << row;
    }
    if (compiled_.has("last")) {
      EXPECT_TRUE(tokens_of(session_->forward(among, 1), 3, 1, 1, 1) == session_->forward(alone, 1)) << row;
    }
  }
}

/// All rows through the cache, each bringing min(what is left, next of `counts`) tokens at a time; rows that
/// bring fewer than the most are padded with what must not be read.
void decode_in(Session& session, const tools::Inputs& inputs, const std::vector<int64_t>& lengths,
               const std::vector<int64_t>& counts, bool staggered, std::vector<Bytes>& rows) {
  const auto B = static_cast<int64_t>(lengths.size());
  std::vector<int64_t> done(lengths.size(), 0);
  rows.assign(lengths.size(), {});
  for (size_t turn = 0; done != lengths; ++turn) {
    std::vector<int64_t> brings(lengths.size());
    int64_t most = 0;
    for (size_t b = 0; b < lengths.size(); ++b) {
      const int64_t wanted = counts[(turn + (staggered ? b : 0)) % counts.size()];
      brings[b] = std::min(lengths[b] - done[b], wanted);
      most = std::max(most, brings[b]);
    }
    if (most == 0) continue;
    tools::Inputs next;
    for (size_t b = 0; b < lengths.size(); ++b) {
      // One row at a time out of the whole, from where it stands.
      tools::Inputs row = select(inputs, {static_cast<int64_t>(b)}, kT, kS);
      for (auto& [name, tensor] : row) {
        if (name.starts_with("src") || name == "memory") continue;
        const int64_t width = tensor.elements() / kT;
        ir::Tensor part(tensor.dtype, tensor.shape);
        part.shape[1] = brings[b];
        part.data.assign(tensor.data.begin() + done[b] * width,
                         tensor.data.begin() + (done[b] + brings[b]) * width);
        tensor = std::move(part);
      }
      row = select(row, {0}, most, kS);
      for (auto& [name, tensor] : row) {
        ir::Tensor& all = next[name];
        if (all.shape.empty()) all = ir::Tensor(tensor.dtype, tensor.shape), all.data.clear();
        all.shape[0] = B;
        all.data.insert(all.data.end(), tensor.data.begin(), tensor.data.end());
      }
    }
    set_mask(next, "mask", brings);
    const Call call(session, next, point_for(session.compiled.joint, B, most, kS));
    const Bytes logits = session.decode(call);
    for (size_t b = 0; b < lengths.size(); ++b) {
      const Bytes part = tokens_of(logits, B, static_cast<int64_t>(b), brings[b], most);
      const Bytes row = tokens_of(logits, B, static_cast<int64_t>(b), most, most);
      EXPECT_TRUE(std::all_of(row.begin() + static_cast<std::ptrdiff_t>(part.size()), row.end(),
                              [](uint8_t byte) { return byte == 0; }))
          << "row " << b << " brings " << brings[b] << " of " << most << " tokens";
      rows[b].insert(rows[b].end(), part.begin(), part.end());
      done[b] += brings[b];
    }
  }
}

void Rows::through_the_cache_in_several_splits() {
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Call source = call_of(all, kT, kS);
  struct Split {
    std::vector<int64_t> counts;
    bool staggered;
  };
  for (const Split& split : {Split{{1}, false}, Split{{kT}, false}, Split{{5, 1, 11, 2}, false},
                             Split{{1, 0, 7, 3}, true}, Split{{16, 17}, true}}) {
    session_->reset_cache(source, 40);
    std::vector<Bytes> rows;
    decode_in(*session_, inputs_, kLengths, split.counts, split.staggered, rows);
    for (size_t b = 0; b < rows.size(); ++b) {
      EXPECT_TRUE(rows[b] == alone(static_cast<int64_t>(b)))
          << "row " << b << " in parts of " << testing::PrintToString(split.counts);
    }
  }
}

TEST_P(Rows, StandAlone) {
  alone_in_a_batch_and_padded();
  logprobs_and_last();
  if (compiled_.has("decode")) through_the_cache_in_several_splits();
}

INSTANTIATE_TEST_SUITE_P(Models, Rows, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tfc::models
