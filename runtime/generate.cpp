// Generation: the prompt goes through the cache in pieces, then token after token is drawn and fed back. Past
// max_seq (TC_CONTEXT_SLIDE) each token is computed afresh from the last max_seq ones, or as many as a fixed T has.
#include <string.h>

#include <type_traits>

#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/sampling.h"
#include "runtime/structs.h"

namespace tc {

namespace {

using Long = long long;

/// Prompt tokens, of all rows together, that go through the cache at a time: bounds the logits that nobody
/// asked for.
constexpr int64_t kPromptTokens = 64;

class Generation {
 public:
  Generation(tc_session& session, const tc_sampling& settings, tc_on_token on_token, void* user)
      : session_(session),
        desc_(*session.model->desc),
        settings_(settings),
        on_token_(on_token),
        user_(user) {}
  ~Generation() { session_.allocator.release(memory_); }

  tc_status run(const tc_batch* given);

 private:
  tc_status check(const tc_batch* given);
  tc_status check_sliding();
  tc_status check_all_edits();
  tc_status check_rows(const tc_batch& batch);
  tc_status check_room(int64_t row, int64_t length);
  tc_status allocate();
  int64_t layout(bool place);
  void begin_rows();
  tc_status begin_cache();
  tc_status feed_prompt();
  tc_status feed_piece(int64_t start, int64_t T);
  void give_out(int64_t row);
  bool give_out_all();
  tc_status feed_last();
  tc_status slide();
  tc_status draw(int64_t row, const char* logits);
  tc_batch own_batch(int64_t T) const;
  bool past_context() const;
  void feed_marks(int64_t start, int64_t T, tc_batch& batch);
  int64_t places(int64_t row, int64_t length) const;

  bool encoder_decoder() const { return is_encoder_decoder(desc_); }
  Role own_role() const { return encoder_decoder() ? RoleTgt : RoleTokens; }
  int64_t row_bytes() const { return desc_.out_width * real_bytes(desc_); }
  /// Tokens that a row can have. Sliding computes them all at once, so that a fixed T is as far as it goes.
  int64_t context() const {
    if (desc_.max_seq == 0) return INT32_MAX;
    return slides_by_fixed() ? desc_.fixed_seq : desc_.max_seq;
  }
  const char* context_name() const { return slides_by_fixed() ? "seq, which is fixed" : "max_seq"; }
  bool slides() const { return settings_.context == TC_CONTEXT_SLIDE; }
  bool slides_by_fixed() const { return slides() && desc_.fixed_seq > 0; }

  tc_session& session_;
  const ModelDesc& desc_;
  const tc_sampling& settings_;
  tc_on_token on_token_;
  void* user_;
  tc_batch prompt_{};
  Inputs own_, source_;    // own_: without tokens when rows begin with bos
  int64_t B_ = 0, T_ = 0;  // of the prompt
  int64_t piece_ = 1;      // tokens of each row that are fed at a time
  int64_t width_ = 0;      // of a row of history_

  Block memory_;
  char* logits_ = nullptr;          // real [B,piece,V]
  int32_t* history_ = nullptr;      // [B,width]: prompt and new tokens
  int64_t* length_ = nullptr;       // [B]: tokens of each row, in all
  int64_t* produced_ = nullptr;     // [B]: of these, new
  int32_t* next_ = nullptr;         // [B]: drawn, not yet given out
  uint8_t* ended_ = nullptr;        // [B]
  int32_t* fed_ = nullptr;          // [B,piece or context]: one call's tokens
  uint8_t* fed_mask_ = nullptr;     // likewise; the same as lengths in fed_lengths_
  int32_t* fed_lengths_ = nullptr;  // [B]
  int32_t* fed_positions_ = nullptr;  // [B,piece], of the prompt, if given
  int32_t* fed_documents_ = nullptr;
  SamplingScratch scratch_{};
};

tc_status Generation::check(const tc_batch* given) {
  Message& message = session_.message;
  tc_status status = require_entry(desc_, EntryDecode, message);
  if (status == TC_OK && slides()) status = require_entry(desc_, EntryLast, message);
  if (status != TC_OK) return status;
  const ExternalDesc* own = find_external(desc_.entries[EntryDecode], own_role());
  if (desc_.head != TC_HEAD_LM || !own || own->dtype != TypeI32) {
    return message.fail(TC_E_STATE, "the model %s has no tokens to generate", desc_.name);
  }
  if (!on_token_) return message.fail(TC_E_ARGUMENT, "on_token is NULL");
  status = read_struct("prompt", given, prompt_, message);
  if (status == TC_OK && slides()) status = check_sliding();
  if (status == TC_OK && encoder_decoder())
    status = check_batch(desc_, EntryEncode, &prompt_, source_, message);
  if (status != TC_OK) return status;
  if (!encoder_decoder() || prompt_.T != 0 || prompt_.tgt) return check_rows(prompt_);
  if (settings_.bos < 0 || settings_.bos >= desc_.vocab) {
    return message.fail(TC_E_ARGUMENT, "bos is %d, expected 0 to %lld", settings_.bos, Long{desc_.vocab - 1});
  }
  B_ = prompt_.B;
  T_ = 1;
  return check_room(0, 1);
}

tc_status Generation::check_sliding() {
  const struct {
    const char* name;
    const void* pointer;
  } all[] = {{"positions", prompt_.positions}, {"documents", prompt_.documents}, {"prefix", prompt_.prefix}};
  for (const auto& input : all) {
    if (!input.pointer) continue;
    return session_.message.fail(TC_E_ARGUMENT, "%s is given, but a sliding context has tokens alone", input.name);
  }
  return TC_OK;
}

/// What of the context a row of that length has taken: its tokens, or its positions where a table ends before.
int64_t Generation::places(int64_t row, int64_t length) const {
  if (!prompt_.positions || desc_.position_rows == 0) return length;
  const int64_t given = own_.roles[own_role()] ? row_length(own_, row) : 1;
  const int64_t next = prompt_.positions[row * T_ + given - 1] + 1 + length - given;
  return next > length ? next : length;
}

tc_status Generation::check_room(int64_t row, int64_t length) {
  const int64_t taken = places(row, length);
  if (settings_.context != TC_CONTEXT_ERROR || settings_.max_new <= context() - taken) return TC_OK;
  return session_.message.fail(TC_E_ARGUMENT,
                               "max_new is %lld, but row %lld has %lld tokens of at most %lld (max_seq)",
                               Long{settings_.max_new}, Long{row}, Long{taken}, Long{context()});
}

/// Calls bring pieces of rows, of one token in the end: before the first of them it is known that all fit.
tc_status Generation::check_all_edits() {
  Sizes sizes = source_.sizes;
  sizes.B = B_;
  sizes.T = 1;
  return check_edits(desc_, session_.edits, EntryDecode, sizes, session_.message);
}

tc_status Generation::check_rows(const tc_batch& batch) {
  tc_batch own = batch;
  own.src_mask = nullptr;  // checked with the source
  own.src_lengths = nullptr;
  tc_status status = check_batch(desc_, EntryDecode, &own, own_, session_.message);
  if (status != TC_OK) return status;
  B_ = own.B;
  T_ = own.T;
  if (T_ > context()) {
    return session_.message.fail(TC_E_ARGUMENT, "T is %lld, expected at most %lld (%s)", Long{T_},
                                 Long{context()}, context_name());
  }
  for (int64_t b = 0; status == TC_OK && b < B_; ++b) {
    const int64_t length = row_length(own_, b);
    if (length == 0) return session_.message.fail(TC_E_ARGUMENT, "row %lld of the prompt is empty", Long{b});
    status = check_room(b, length);
  }
  return status;
}

/// Sizes of all arrays; with `place` their addresses too.
int64_t Generation::layout(bool place) {
  const int64_t window = slides() && desc_.max_seq > 0 && context() > piece_ ? context() : piece_;
  int64_t bytes = 0;
  const auto array = [&](auto*& pointer, int64_t count) {
    if (place) pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(memory_.data + bytes);
    bytes = plus(bytes, align_up(times(count, sizeof *pointer)));
  };
  array(logits_, times(times(B_, piece_), row_bytes()));
  array(history_, times(B_, width_));
  array(length_, B_);
  array(produced_, B_);
  array(next_, B_);
  array(ended_, B_);
  array(fed_, times(B_, window));
  array(fed_mask_, times(B_, window));
  array(fed_lengths_, B_);
  array(fed_positions_, prompt_.positions ? times(B_, piece_) : 0);
  array(fed_documents_, prompt_.documents ? times(B_, piece_) : 0);
  array(scratch_.values, desc_.out_width);
  array(scratch_.weights, desc_.out_width);
  array(scratch_.order, desc_.out_width);
  return bytes;
}

tc_status Generation::allocate() {
  piece_ = kPromptTokens / B_;
  for (int64_t b = 0; prompt_.prefix && b < B_; ++b) {  // a prefix goes through whole
    if (piece_ < prompt_.prefix[b]) piece_ = prompt_.prefix[b];
  }
  if (piece_ > T_) piece_ = T_;
  if (piece_ < 1) piece_ = 1;
  width_ = plus(T_, settings_.max_new);
  if (!slides() && width_ > context()) width_ = context();
  const tc_status status =
      session_.allocator.allocate(memory_, layout(false), "generation", session_.message);
  if (status == TC_OK) layout(true);
  return status;
}

void Generation::begin_rows() {
  const int32_t* tokens = static_cast<const int32_t*>(own_.roles[own_role()]);
  for (int64_t b = 0; b < B_; ++b) {
    length_[b] = tokens ? row_length(own_, b) : 1;
    const int32_t* row = tokens ? tokens + b * T_ : &settings_.bos;
    memcpy(history_ + b * width_, row, static_cast<size_t>(length_[b]) * sizeof(int32_t));
    produced_[b] = 0;
    ended_[b] = !slides() && places(b, length_[b]) >= context();
  }
}

tc_status Generation::begin_cache() {
  int64_t capacity = plus(T_, settings_.max_new);
  if (capacity > context()) capacity = context();
  return reset_cache(session_, B_, capacity, encoder_decoder() ? &source_ : nullptr);
}

/// One call's own tokens, padded on the right to T, with the mask or lengths that the model declares.
tc_batch Generation::own_batch(int64_t T) const {
  tc_batch batch;
  memset(&batch, 0, sizeof batch);
  batch.size = sizeof batch;
  batch.B = B_;
  batch.T = T;
  if (encoder_decoder()) {
    batch.tgt = fed_;
  } else {
    batch.tokens = fed_;
  }
  for (int64_t b = 0; b < B_; ++b) {
    for (int64_t t = 0; t < T; ++t) fed_mask_[b * T + t] = t < fed_lengths_[b];
  }
  if (desc_.has_lengths) {
    batch.lengths = fed_lengths_;
  } else if (desc_.has_mask) {
    batch.mask = fed_mask_;
  }
  return batch;
}

/// What the prompt says of tokens start..start+T-1 besides their ids. New tokens go on from its last ones.
void Generation::feed_marks(int64_t start, int64_t T, tc_batch& batch) {
  if (start == 0) batch.prefix = prompt_.prefix;
  const auto feed = [&](const int32_t* given, int32_t* fed) -> const int32_t* {
    for (int64_t b = 0; given && b < B_; ++b) {
      memcpy(fed + b * T, given + b * T_ + start, static_cast<size_t>(T) * sizeof(int32_t));
    }
    return given ? fed : nullptr;
  };
  batch.positions = feed(prompt_.positions, fed_positions_);
  batch.documents = feed(prompt_.documents, fed_documents_);
}

tc_status Generation::draw(int64_t row, const char* logits) {
  if (ended_[row]) return TC_OK;
  return sample(desc_, logits, settings_, {settings_.seed, settings_.first_row + row, length_[row]}, scratch_, next_[row],
                session_.message);
}

/// Tokens start..start+T-1 of every row; draws for the rows whose last token is among them.
tc_status Generation::feed_piece(int64_t start, int64_t T) {
  for (int64_t b = 0; b < B_; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      const bool real = start + t < length_[b];
      fed_[b * T + t] = real ? history_[b * width_ + start + t] : 0;
    }
    const int64_t left = length_[b] - start;
    fed_lengths_[b] = static_cast<int32_t>(left < 0 ? 0 : left < T ? left : T);
  }
  tc_batch batch = own_batch(T);
  feed_marks(start, T, batch);
  tc_status status = decode_next(session_, &batch, logits_);
  for (int64_t b = 0; status == TC_OK && b < B_; ++b) {
    const int64_t last = length_[b] - 1 - start;
    if (last >= 0 && last < T) status = draw(b, logits_ + (b * T + last) * row_bytes());
  }
  return status;
}

tc_status Generation::feed_prompt() {
  tc_status status = TC_OK;
  for (int64_t start = 0; status == TC_OK && start < T_; start += piece_) {
    status = feed_piece(start, T_ - start < piece_ ? T_ - start : piece_);
  }
  return status;
}

/// The newest token of every row that goes on. Without masks ended rows are fed along.
tc_status Generation::feed_last() {
  for (int64_t b = 0; b < B_; ++b) {
    fed_[b] = ended_[b] ? 0 : history_[b * width_ + length_[b] - 1];
    fed_lengths_[b] = !ended_[b];
  }
  const tc_batch batch = own_batch(1);
  tc_status status = decode_next(session_, &batch, logits_);
  for (int64_t b = 0; status == TC_OK && b < B_; ++b) status = draw(b, logits_ + b * row_bytes());
  return status;
}

/// The last tokens of every row, as many as the context has, without the cache.
tc_status Generation::slide() {
  const int64_t T = context();
  for (int64_t b = 0; b < B_; ++b) {
    const int64_t has = ended_[b] ? 0 : length_[b] < T ? length_[b] : T;
    memset(fed_ + b * T, 0, static_cast<size_t>(T) * sizeof(int32_t));
    memcpy(fed_ + b * T, history_ + b * width_ + length_[b] - has,
           static_cast<size_t>(has) * sizeof(int32_t));
    fed_lengths_[b] = static_cast<int32_t>(has);
  }
  tc_batch batch = own_batch(T);
  batch.S = prompt_.S;
  batch.src = prompt_.src;
  batch.memory = prompt_.memory;
  batch.src_mask = prompt_.src_mask;
  batch.src_lengths = prompt_.src_lengths;
  tc_status status = run_to_array(session_, EntryLast, &batch, RoleOutput, "logits", logits_);
  for (int64_t b = 0; status == TC_OK && b < B_; ++b) status = draw(b, logits_ + b * row_bytes());
  return status;
}

void Generation::give_out(int64_t row) {
  const int32_t token = next_[row];
  history_[row * width_ + length_[row]] = token;
  ++length_[row];
  ++produced_[row];
  const bool stopped = on_token_(user_, row, token) != 0;
  const bool full = !slides() && places(row, length_[row]) >= context();
  ended_[row] = stopped || token == settings_.eos || produced_[row] == settings_.max_new || full;
}

/// False: all rows have ended.
bool Generation::give_out_all() {
  bool going_on = false;
  for (int64_t b = 0; b < B_; ++b) {
    if (!ended_[b]) give_out(b);
    if (!ended_[b]) going_on = true;
  }
  return going_on;
}

bool Generation::past_context() const {
  for (int64_t b = 0; b < B_; ++b) {
    if (!ended_[b] && length_[b] > context()) return true;
  }
  return false;
}

tc_status Generation::run(const tc_batch* given) {
  tc_status status = check(given);
  if (status != TC_OK || settings_.max_new == 0) return status;
  status = check_all_edits();
  if (status == TC_OK) status = allocate();
  if (status != TC_OK) return status;
  begin_rows();
  status = begin_cache();
  if (status == TC_OK) status = feed_prompt();
  while (status == TC_OK && give_out_all()) status = past_context() ? slide() : feed_last();
  return status;
}

tc_status generate(tc_session& session, const tc_batch* prompt, const tc_sampling* sampling,
                   tc_on_token on_token, void* user) {
  tc_sampling settings;
  const tc_status status = check_sampling(*session.model->desc, sampling, settings, session.message);
  return status == TC_OK ? Generation(session, settings, on_token, user).run(prompt) : status;
}

}  // namespace

}  // namespace tc

extern "C" tc_status tc_rt_generate(tc_session* session, const tc_batch* prompt, const tc_sampling* sampling,
                                    tc_on_token on_token, void* user) {
  const tc::SessionCall call(session);
  return call.status() == TC_OK ? tc::generate(*session, prompt, sampling, on_token, user) : call.status();
}
