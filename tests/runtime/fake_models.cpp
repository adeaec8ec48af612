#include "fake_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "table_builder.h"

namespace tc::test {

namespace {

template <class Type>
Type* pointer(int64_t slot) {
  return reinterpret_cast<Type*>(static_cast<intptr_t>(slot));
}

/// h, tokens, mask, emb, T: the sums, each gathered in the thread's scratch first.
void prefix_sums(const int64_t* s, int64_t first, int64_t last, void* scratch) {
  float* numbers = static_cast<float*>(scratch);
  for (int64_t row = first; row < last; ++row) {
    const int64_t T = s[4], b = row / T, t = row % T;
    int64_t count = 0;
    for (int64_t j = 0; j <= t; ++j) {
      if (pointer<uint8_t>(s[2])[b * T + j])
        numbers[count++] = pointer<float>(s[3])[pointer<int32_t>(s[1])[b * T + j]];
    }
    float sum = 0;
    for (int64_t j = 0; j < count; ++j) sum += numbers[j];
    pointer<float>(s[0])[row] = sum;
  }
}

void write_logits(float* out, float h, const float* bias) {
  for (int v = 0; v < kVocab; ++v) out[v] = h * static_cast<float>(v + 1) / 16 + bias[v];
}

/// out, h, mask, bias
void logits(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t row = first; row < last; ++row) {
    float* out = pointer<float>(s[0]) + row * kVocab;
    if (pointer<uint8_t>(s[2])[row]) {
      write_logits(out, pointer<float>(s[1])[row], pointer<float>(s[3]));
    } else {
      std::memset(out, 0, kVocab * sizeof(float));
    }
  }
}

/// out, h, mask, bias, T
void last_logits(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t b = first; b < last; ++b) {
    int64_t t = s[4] - 1;
    while (t >= 0 && !pointer<uint8_t>(s[2])[b * s[4] + t]) --t;
    float* out = pointer<float>(s[0]) + b * kVocab;
    if (t >= 0) write_logits(out, pointer<float>(s[1])[b * s[4] + t], pointer<float>(s[3]));
  }
}

bool counts(const int64_t* s, int64_t row) {
  return pointer<uint8_t>(s[0])[row] && pointer<int32_t>(s[1])[row] != -100;
}

/// mask, targets, rows, h, bias, sum, count, logprobs?
void loss(const int64_t* s, int64_t, int64_t, void*) {
  double sum = 0, count = 0;
  for (int64_t row = 0; row < s[2]; ++row) {
    if (s[7]) pointer<float>(s[7])[row] = 0;
    if (!counts(s, row)) continue;
    float out[kVocab];
    write_logits(out, pointer<float>(s[3])[row], pointer<float>(s[4]));
    const float logit = out[pointer<int32_t>(s[1])[row]];
    if (s[7]) pointer<float>(s[7])[row] = logit;
    sum -= logit;
    count += 1;
  }
  if (s[5]) *pointer<double>(s[5]) = sum;
  if (s[6]) *pointer<double>(s[6]) = count;
}

/// mask, targets, T, tokens, mean, count, gradients of emb, of bias: one row of the batch
void train_row(const int64_t* s, int64_t, int64_t, void*) {
  const double scale = *pointer<double>(s[4]) != 0 ? 1 / *pointer<double>(s[5]) : 1;
  for (int64_t t = 0; t < s[2]; ++t) {
    if (!counts(s, t)) continue;
    const int32_t target = pointer<int32_t>(s[1])[t];
    pointer<float>(s[7])[target] -= static_cast<float>(scale);
    for (int64_t j = 0; j <= t; ++j) {
      if (!pointer<uint8_t>(s[0])[j]) continue;
      pointer<float>(s[6])[pointer<int32_t>(s[3])[j]] -= static_cast<float>(scale * (target + 1) / 16);
    }
  }
}

/// norm, grads, count, clip, scale
void step_norm(const int64_t* s, int64_t, int64_t, void*) {
  double squares = 0;
  for (int i = 0; i < kBlock; ++i) squares += std::pow(pointer<float>(s[1])[i], 2);
  const double count = *pointer<double>(s[2]), clip = *pointer<double>(s[3]);
  const double norm = std::sqrt(squares) / count;
  *pointer<double>(s[0]) = norm;
  *pointer<double>(s[4]) = (clip > 0 && norm > clip ? clip / norm : 1) / count;
}

/// params, grads, moment1, moment2, scale, hyper, lr_scale, decay; plain descent: enough to see every input
void step_apply(const int64_t* s, int64_t first, int64_t last, void*) {
  static const int64_t offsets[3] = {0, 16, 32}, sizes[3] = {16, 16, 5};
  const double* hyper = pointer<double>(s[5]);
  for (int64_t p = first; p < last; ++p) {
    for (int64_t i = offsets[p]; i < offsets[p] + sizes[p]; ++i) {
      float& gradient = pointer<float>(s[1])[i];
      const double lr = hyper[0] * pointer<double>(s[6])[p], decay = hyper[4] * pointer<double>(s[7])[p];
      const double g = gradient * *pointer<double>(s[4]);
      float& value = pointer<float>(s[0])[i];
      value = static_cast<float>(value - lr * g - lr * decay * value);
      pointer<float>(s[2])[i] += static_cast<float>(g);
      pointer<float>(s[3])[i] += static_cast<float>(hyper[5]);
      gradient = 0;
    }
  }
}

/// cache, tokens, mask, offsets, emb, T, C
void append(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t b = first; b < last; ++b) {
    for (int64_t t = 0; t < s[5]; ++t) {
      if (!pointer<uint8_t>(s[2])[b * s[5] + t]) continue;
      pointer<float>(s[0])[b * s[6] + pointer<int32_t>(s[3])[b] + t] =
          pointer<float>(s[4])[pointer<int32_t>(s[1])[b * s[5] + t]];
    }
  }
}

/// out, cache, mask, offsets, bias, T, C, cross?, src_mask?, S
void cached_logits(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t b = row / s[5], t = row % s[5];
    float* out = pointer<float>(s[0]) + row * kVocab;
    std::memset(out, 0, kVocab * sizeof(float));
    if (!pointer<uint8_t>(s[2])[row]) continue;
    float h = 0;
    for (int64_t j = 0; j <= pointer<int32_t>(s[3])[b] + t; ++j) h += pointer<float>(s[1])[b * s[6] + j];
    for (int64_t k = 0; s[7] && k < s[9]; ++k) {
      if (pointer<uint8_t>(s[8])[b * s[9] + k]) h += pointer<float>(s[7])[b * s[9] + k];
    }
    write_logits(out, h, pointer<float>(s[4]));
  }
}

/// cross, src, src_mask, factor: a constant table
void encode_source(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t i = first; i < last; ++i) {
    if (pointer<uint8_t>(s[2])[i]) {
      pointer<float>(s[0])[i] = static_cast<float>(pointer<int32_t>(s[1])[i] * *pointer<double>(s[3]));
    }
  }
}

/// h, src, src_mask, factor, T, S: adds the source to rows that have their own sums
void add_source(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t b = row / s[4];
    for (int64_t k = 0; k < s[5]; ++k) {
      if (!pointer<uint8_t>(s[2])[b * s[5] + k]) continue;
      pointer<float>(s[0])[row] +=
          static_cast<float>(pointer<int32_t>(s[1])[b * s[5] + k] * *pointer<double>(s[3]));
    }
  }
}

/// out, x, w
void multiply(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t row = first; row < last; ++row) {
    for (int d = 0; d < kWidth; ++d) {
      pointer<double>(s[0])[row * kWidth + d] =
          pointer<double>(s[1])[row * kWidth + d] * pointer<double>(s[2])[d];
    }
  }
}

/// gw, x, gy, rows
void multiply_grad(const int64_t* s, int64_t first, int64_t last, void*) {
  for (int64_t d = first; d < last; ++d) {
    for (int64_t row = 0; row < s[3]; ++row) {
      pointer<double>(s[0])[d] +=
          pointer<double>(s[1])[row * kWidth + d] * pointer<double>(s[2])[row * kWidth + d];
    }
  }
}

const Expr kRows = B * T, kSums = Expr(64) * ceildiv(kRows * Expr(4), 64);
const Expr kBias = 64, kScratch = 64;  // bytes

void common(TableBuilder& t, int32_t kind) {
  ModelDesc& d = t.desc();
  d.description = "";
  d.architecture = "";
  d.target = "x86-64-v2";
  d.build_id = 42;
  d.real = TypeF32;
  d.kind = kind;
  d.isa = 1;
  d.head = TC_HEAD_LM;
  d.d_model = 1;
  d.out_width = d.vocab = kVocab;
  d.max_seq = kMaxSeq;
  d.ignore_index = -100;
  d.has_mask = d.has_lengths = 1;
  d.causal = 1;
  d.parameter_block = kBlock;
  d.gradient_block = kBlock;
  t.parameter({"emb", 0, 16, 2, 1, 0, InitNormal, 0.5, {16, 1, 1, 1}});
  t.parameter({"bias", 16, 16, 1, 0, 0, InitConstant, 0.25, {16, 1, 1, 1}});
  t.parameter({"frozen", 32, 5, 1, 0, 1, InitUniform, 0.1, {5, 1, 1, 1}});
}

void forward_entries(TableBuilder& t) {
  for (EntryId entry : {EntryInfer, EntryLast}) {
    t.begin(entry, kSums, kScratch);
    const auto tokens = t.external(RoleTokens, false, TypeI32, {B, T}),
               mask = t.external(RoleMask, false, TypeU8, {B, T});
    const bool all = entry == EntryInfer;
    const auto out = t.external(RoleOutput, true, TypeF32,
                                all ? std::vector<Expr>{B, T, kVocab} : std::vector<Expr>{B, kVocab});
    t.call(prefix_sums, kRows, {in(SpaceWorkspace), ext(tokens), ext(mask), in(SpaceParams), number(T)});
    t.call(all ? logits : last_logits, all ? kRows : B,
           {ext(out), in(SpaceWorkspace), ext(mask), in(SpaceParams, kBias), number(T)}, all ? kLarge : 1);
  }
}

struct LossInputs {
  int32_t tokens, mask, targets;
};

LossInputs loss_inputs(TableBuilder& t) {
  return {t.external(RoleTokens, false, TypeI32, {B, T}), t.external(RoleMask, false, TypeU8, {B, T}),
          t.external(RoleTargets, false, TypeI32, {B, T})};
}

void loss_records(TableBuilder& t, const LossInputs& in_, Arg sum, Arg count, Arg logprobs) {
  t.call(prefix_sums, kRows,
         {in(SpaceWorkspace), ext(in_.tokens), ext(in_.mask), in(SpaceParams), number(T)});
  t.call(loss, 1,
         {ext(in_.mask), ext(in_.targets), number(kRows), in(SpaceWorkspace), in(SpaceParams, kBias), sum,
          count, logprobs});
}

void loss_entries(TableBuilder& t) {
  for (EntryId entry : {EntryLoss, EntryLogprobs, EntryTrain}) {
    t.begin(entry, kSums, kScratch);
    const LossInputs inputs = loss_inputs(t);
    if (entry == EntryLogprobs) {
      const auto out = t.external(RoleLogprobs, true, TypeF32, {B, T});
      loss_records(t, inputs, null(), null(), ext(out));
      continue;
    }
    const auto sum = t.external(RoleLossSum, true, TypeF64, {}),
               count = t.external(RoleLossCount, true, TypeF64, {});
    loss_records(t, inputs, ext(sum), ext(count), null());
    if (entry == EntryLoss) continue;
    const auto mean = t.external(RoleMean, false, TypeF64, {});
    t.loop(B);
    t.call(
        train_row, 1,
        {ext(inputs.mask, I * T), ext(inputs.targets, I * T * Expr(4)), number(T),
         ext(inputs.tokens, I * T * Expr(4)), ext(mean), ext(count), in(SpaceGrads), in(SpaceGrads, kBias)});
    t.end_loop();
  }
}

void step_entry(TableBuilder& t) {
  t.begin(EntryStep, 64);
  const auto count = t.external(RoleCount, false, TypeF64, {}),
             clip = t.external(RoleClip, false, TypeF64, {});
  const auto hyper = t.external(RoleHyper, false, TypeF64, {8}),
             lr_scale = t.external(RoleLrScale, false, TypeF64, {3});
  const auto decay = t.external(RoleDecay, false, TypeF64, {3}),
             norm = t.external(RoleNorm, true, TypeF64, {});
  t.call(step_norm, 1, {ext(norm), in(SpaceGrads), ext(count), ext(clip), in(SpaceWorkspace)});
  t.call(step_apply, 3,
         {in(SpaceParams), in(SpaceGrads), in(SpaceMoment1), in(SpaceMoment2), in(SpaceWorkspace), ext(hyper),
          ext(lr_scale), ext(decay)});
}

void decode_entry(TableBuilder& t, bool source) {
  const Expr cross = Expr(64) * ceildiv(B * C * Expr(4), 64);
  t.desc().cache_bytes = t.program(source ? cross + Expr(64) * ceildiv(B * S * Expr(4), 64) : cross);
  t.begin(EntryDecode);
  const auto tokens = t.external(source ? RoleTgt : RoleTokens, false, TypeI32, {B, T});
  const auto mask = t.external(RoleMask, false, TypeU8, {B, T}),
             offsets = t.external(RoleOffsets, false, TypeI32, {B});
  const auto out = t.external(RoleOutput, true, TypeF32, {B, T, kVocab});
  const Arg src_mask = source ? ext(t.external(RoleSrcMask, false, TypeU8, {B, S})) : null();
  t.call(append, B,
         {in(SpaceCache), ext(tokens), ext(mask), ext(offsets), in(SpaceParams), number(T), number(C)});
  t.call(cached_logits, kRows,
         {ext(out), in(SpaceCache), ext(mask), ext(offsets), in(SpaceParams, kBias), number(T), number(C),
          source ? in(SpaceCache, cross) : null(), src_mask, number(S)});
  if (!source) return;
  static const double factor = 0.5;
  const int32_t constant = t.constant(&factor);
  t.begin(EntryEncode);
  const auto src = t.external(RoleSrc, false, TypeI32, {B, S}),
             encode_mask = t.external(RoleSrcMask, false, TypeU8, {B, S});
  t.call(encode_source, B * S,
         {in(SpaceCache, cross), ext(src), ext(encode_mask), {SpaceConstant, constant, 0}});
  t.begin(EntryLast, kSums, kScratch);
  const auto src_ = t.external(RoleSrc, false, TypeI32, {B, S}),
             src_mask_ = t.external(RoleSrcMask, false, TypeU8, {B, S});
  const auto tgt = t.external(RoleTgt, false, TypeI32, {B, T}),
             mask_ = t.external(RoleMask, false, TypeU8, {B, T});
  const auto out_ = t.external(RoleOutput, true, TypeF32, {B, kVocab});
  t.call(prefix_sums, kRows, {in(SpaceWorkspace), ext(tgt), ext(mask_), in(SpaceParams), number(T)});
  t.call(add_source, kRows,
         {in(SpaceWorkspace), ext(src_), ext(src_mask_), {SpaceConstant, constant, 0}, number(T), number(S)});
  t.call(last_logits, B, {ext(out_), in(SpaceWorkspace), ext(mask_), in(SpaceParams, kBias), number(T)});
}

TableBuilder* make_decoder() {
  TableBuilder& t = *new TableBuilder("fake");
  common(t, TC_KIND_DECODER);
  forward_entries(t);
  loss_entries(t);
  step_entry(t);
  decode_entry(t, false);
  t.finish();
  return &t;
}

TableBuilder* make_translator() {
  TableBuilder& t = *new TableBuilder("translator");
  common(t, TC_KIND_ENCODER_DECODER);
  t.desc().src_vocab = kSourceVocab;
  decode_entry(t, true);
  t.finish();
  return &t;
}

TableBuilder* make_hidden() {
  TableBuilder& t = *new TableBuilder("hidden");
  common(t, TC_KIND_ENCODER);
  ModelDesc& d = t.desc();
  d.real = TypeF64;
  d.head = TC_HEAD_NONE;
  d.vocab = 0;
  d.out_width = d.d_model = kWidth;
  d.max_seq = 0;
  d.has_mask = d.has_lengths = 0;
  for (EntryId entry : {EntryInfer, EntryVjp}) {
    t.begin(entry);
    const auto x = t.external(RoleX, false, TypeF64, {B, T, kWidth});
    if (entry == EntryInfer) {
      const auto out = t.external(RoleOutput, true, TypeF64, {B, T, kWidth});
      t.call(multiply, kRows, {ext(out), ext(x), in(SpaceParams)});
      continue;
    }
    const auto gy = t.external(RoleGradOutput, false, TypeF64, {B, T, kWidth});
    const auto gx = t.external(RoleGradX, true, TypeF64, {B, T, kWidth});
    t.call(multiply, kRows, {ext(gx), ext(gy), in(SpaceParams)});
    t.call(multiply_grad, kWidth, {in(SpaceGrads), ext(x), ext(gy), number(kRows)});
  }
  t.finish();
  return &t;
}

}  // namespace

const ModelDesc& decoder() {
  static const TableBuilder* const tables = make_decoder();
  return const_cast<TableBuilder*>(tables)->desc();
}
const ModelDesc& hidden() {
  static const TableBuilder* const tables = make_hidden();
  return const_cast<TableBuilder*>(tables)->desc();
}
const ModelDesc& translator() {
  static const TableBuilder* const tables = make_translator();
  return const_cast<TableBuilder*>(tables)->desc();
}

Fixture::Fixture(const ModelDesc& desc, tc_options options) {
  options.size = sizeof options;
  EXPECT_EQ(create_model(desc, &options, &model), TC_OK);
  EXPECT_EQ(tc_rt_session_create(model, nullptr, &session), TC_OK);
}

Fixture::~Fixture() {
  tc_rt_session_destroy(session);
  tc_rt_model_destroy(model);
}

std::vector<float> Fixture::everything() const {
  std::vector<float> all;
  for (int block : {TC_BLOCK_PARAMETERS, TC_BLOCK_GRADIENTS, TC_BLOCK_MOMENT1, TC_BLOCK_MOMENT2}) {
    const float* values = static_cast<const float*>(tc_rt_block(model, block));
    if (values) all.insert(all.end(), values, values + kBlock);
  }
  tc_cache cache{};
  cache.size = sizeof cache;
  tc_rt_cache_state(session, &cache);
  all.push_back(static_cast<float>(cache.B));
  for (int64_t b = 0; b < cache.B; ++b) all.push_back(static_cast<float>(cache.lengths[b]));
  tc_state state{};
  state.size = sizeof state;
  tc_rt_get_state(model, &state);
  all.push_back(static_cast<float>(state.step_count));
  all.push_back(static_cast<float>(state.call));
  all.push_back(static_cast<float>(state.divisor));
  return all;
}

tc_options options_of(int threads) {
  tc_options options{};
  options.size = sizeof options;
  options.threads = threads;
  return options;
}

tc_batch batch_of(int64_t B, int64_t T) {
  tc_batch batch{};
  batch.size = sizeof batch;
  batch.B = B;
  batch.T = T;
  return batch;
}

tc_adamw adamw_of(double lr) {
  tc_adamw settings{};
  settings.size = sizeof settings;
  settings.lr = lr;
  settings.beta1 = 0.9;
  settings.beta2 = 0.99;
  settings.eps = 1e-8;
  return settings;
}

}  // namespace tc::test

/// The library's own model.
extern "C" const tc::ModelDesc tc_model_desc = tc::test::decoder();
