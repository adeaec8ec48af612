#include "runtime/batch.h"

#include "runtime/heads.h"
#include "runtime/structs.h"

namespace tc {

namespace {

using Long = long long;

class BatchCheck {
 public:
  BatchCheck(const ModelDesc& model, EntryId entry, const tc_batch& batch, Inputs& inputs, Message& message)
      : model_(model),
        id_(entry),
        entry_(model.entries[entry]),
        batch_(batch),
        in_(inputs),
        message_(message) {}

  tc_status run();

 private:
  bool takes(Role role) const { return find_external(entry_, role) != nullptr; }
  tc_status undeclared();
  tc_status sizes();
  tc_status arrays();
  tc_status check_source_documents();
  tc_status masks(bool source);
  tc_status mask_values(const uint8_t* mask, bool source);
  tc_status lengths(const int32_t* lengths, bool source);
  tc_status ids(Role role, const char* name, int64_t limit, bool source);
  tc_status positions(bool source);
  tc_status prefix();

  const ModelDesc& model_;
  const EntryId id_;
  const EntryDesc& entry_;
  const tc_batch& batch_;
  Inputs& in_;
  Message& message_;
};

struct Given {
  const char* name;
  const void* pointer;
  bool declared;
};

tc_status BatchCheck::undeclared() {
  const tc_batch& b = batch_;
  const uint32_t declared = declared_inputs(model_);
  const Given all[] = {{"tokens", b.tokens, (declared & TC_INPUT_TOKENS) != 0},
                       {"x", b.x, (declared & TC_INPUT_X) != 0},
                       {"src", b.src, (declared & TC_INPUT_SRC) != 0},
                       {"tgt", b.tgt, (declared & TC_INPUT_TGT) != 0},
                       {"memory", b.memory, (declared & TC_INPUT_MEMORY) != 0},
                       {"types", b.types, (declared & TC_INPUT_TYPES) != 0},
                       {"mask", b.mask, (declared & TC_INPUT_MASK) != 0},
                       {"lengths", b.lengths, (declared & TC_INPUT_LENGTHS) != 0},
                       {"src_mask", b.src_mask, (declared & TC_INPUT_SRC_MASK) != 0 || id_ == EntryDecode},
                       {"src_lengths", b.src_lengths, (declared & TC_INPUT_SRC_LENGTHS) != 0},
                       {"targets", b.targets, (declared & TC_INPUT_TARGETS) != 0},
                       {"image", b.image, (declared & TC_INPUT_IMAGE) != 0},
                       {"positions", b.positions, (declared & TC_INPUT_POSITIONS) != 0},
                       {"documents", b.documents, (declared & TC_INPUT_DOCUMENTS) != 0},
                       {"prefix", b.prefix, (declared & TC_INPUT_PREFIX) != 0},
                       {"weights", b.weights, (declared & TC_INPUT_WEIGHTS) != 0},
                       {"src_positions", b.src_positions, (declared & TC_INPUT_SRC_POSITIONS) != 0},
                       {"src_documents", b.src_documents,
                        (declared & TC_INPUT_SRC_DOCUMENTS) != 0 || id_ == EntryDecode}};
  for (const Given& given : all) {
    if (given.pointer && !given.declared) {
      return message_.fail(TC_E_ARGUMENT, "%s is given, but the model %s does not declare it", given.name,
                           model_.name);
    }
  }
  return TC_OK;
}

tc_status BatchCheck::arrays() {
  const tc_batch& b = batch_;
  struct {
    Role role;
    const char* name;
    const void* pointer;
    bool optional;
  } const all[] = {{RoleTokens, "tokens", b.tokens, false},
                   {RoleX, "x", b.x, false},
                   {RoleSrc, "src", b.src, false},
                   {RoleTgt, "tgt", b.tgt, false},
                   {RoleMemory, "memory", b.memory, false},
                   {RoleImage, "image", b.image, false},
                   {RoleTypes, "types", b.types, false},
                   {RolePositions, "positions", b.positions, true},
                   {RoleDocuments, "documents", b.documents, true},
                   {RolePrefix, "prefix", b.prefix, true},
                   {RoleSrcPositions, "src_positions", b.src_positions, true},
                   {RoleSrcDocuments, "src_documents", b.src_documents, true}};
  for (const auto& input : all) {
    const ExternalDesc* external = find_external(entry_, input.role);
    if (!external || (input.optional && !input.pointer)) continue;
    if (!input.pointer) return message_.fail(TC_E_ARGUMENT, "%s is missing", input.name);
    const tc_status status = check_pointer(input.name, input.pointer, dtype_bytes(external->dtype), message_);
    if (status != TC_OK) return status;
    in_.roles[input.role] = input.pointer;
  }
  in_.src_documents = b.src_documents;
  return check_source_documents();
}

/// Encode keeps them for decode, whether its own graph reads them or not.
tc_status BatchCheck::check_source_documents() {
  if (id_ != EntryEncode || !batch_.src_documents) return TC_OK;
  return check_pointer("src_documents", batch_.src_documents, sizeof(int32_t), message_);
}

tc_status BatchCheck::mask_values(const uint8_t* mask, bool source) {
  const int64_t B = in_.sizes.B, tokens = source ? in_.sizes.S : in_.sizes.T;
  const char* name = source ? "src_mask" : "mask";
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < tokens; ++t) {
      const uint8_t value = mask[b * tokens + t];
      if (value > 1) {
        return message_.fail(TC_E_ARGUMENT, "%s[%lld,%lld] is %d, expected 0 or 1", name, Long{b}, Long{t},
                             value);
      }
      if (id_ == EntryDecode && !source && t > 0 && value && !mask[b * tokens + t - 1]) {
        return message_.fail(TC_E_ARGUMENT,
                             "mask[%lld,%lld] is 1 after a 0, rows of decode and generate are padded on "
                             "the right",
                             Long{b}, Long{t});
      }
    }
  }
  return TC_OK;
}

tc_status BatchCheck::lengths(const int32_t* lengths, bool source) {
  const int64_t tokens = source ? in_.sizes.S : in_.sizes.T;
  for (int64_t b = 0; b < in_.sizes.B; ++b) {
    if (lengths[b] < 0 || lengths[b] > tokens) {
      return message_.fail(TC_E_ARGUMENT, "%s[%lld] is %d, expected 0 to %lld",
                           source ? "src_lengths" : "lengths", Long{b}, lengths[b], Long{tokens});
    }
  }
  return TC_OK;
}

tc_status BatchCheck::masks(bool source) {
  const uint8_t* mask = source ? batch_.src_mask : batch_.mask;
  const int32_t* row_lengths = source ? batch_.src_lengths : batch_.lengths;
  if (mask && row_lengths) {
    return message_.fail(TC_E_ARGUMENT, source ? "src_mask and src_lengths are both given, expected one"
                                               : "mask and lengths are both given, expected one");
  }
  if (mask) {
    in_.roles[source ? RoleSrcMask : RoleMask] = mask;
    return mask_values(mask, source);
  }
  if (!row_lengths) return TC_OK;
  (source ? in_.src_lengths : in_.lengths) = row_lengths;
  return lengths(row_lengths, source);
}

tc_status BatchCheck::ids(Role role, const char* name, int64_t limit, bool source) {
  const ExternalDesc* external = find_external(entry_, role);
  if (!external || external->dtype != TypeI32) return TC_OK;
  const int32_t* values = static_cast<const int32_t*>(in_.roles[role]);
  const int64_t tokens = source ? in_.sizes.S : in_.sizes.T;
  for (int64_t b = 0; b < in_.sizes.B; ++b) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int32_t id = values[b * tokens + t];
      if (static_cast<uint64_t>(int64_t{id}) >= static_cast<uint64_t>(limit) && in_.real(b, t, source)) {
        return message_.fail(TC_E_ARGUMENT, "%s[%lld,%lld] is %d, expected 0 to %lld", name, Long{b}, Long{t},
                             id, Long{limit - 1});
      }
    }
  }
  return TC_OK;
}

/// Given ones, and those that go on from the cache where nothing is given: within a learned table, never negative.
tc_status BatchCheck::positions(bool source) {
  const Role role = source ? RoleSrcPositions : RolePositions;
  if (!takes(role)) return TC_OK;
  const int32_t* values = static_cast<const int32_t*>(in_.roles[role]);
  const int64_t tokens = source ? in_.sizes.S : in_.sizes.T;
  const int64_t limit = model_.position_rows > 0 ? model_.position_rows : INT32_MAX;
  for (int64_t b = 0; b < in_.sizes.B; ++b) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t position = values ? values[b * tokens + t] : (source ? 0 : in_.next_position(b)) + t;
      if ((position >= 0 && position < limit) || !in_.real(b, t, source)) continue;
      return message_.fail(TC_E_ARGUMENT, "%s[%lld,%lld] is %lld%s, expected 0 to %lld",
                           source ? "src_positions" : "positions", Long{b}, Long{t}, Long{position},
                           values ? "" : " (it goes on from the last one)", Long{limit - 1});
    }
  }
  return TC_OK;
}

/// A prefix is decoded in one piece, the row's first: its tokens see each other.
tc_status BatchCheck::prefix() {
  const int32_t* values = static_cast<const int32_t*>(in_.roles[RolePrefix]);
  for (int64_t b = 0; values && b < in_.sizes.B; ++b) {
    const bool decodes = id_ == EntryDecode, begun = decodes && in_.cached && in_.cached[b] > 0;
    const int64_t most = !decodes ? in_.sizes.T : begun ? 0 : row_length(in_, b);
    if (values[b] >= 0 && values[b] <= most) continue;
    return message_.fail(TC_E_ARGUMENT, "prefix[%lld] is %d, expected 0 to %lld%s", Long{b}, values[b], Long{most},
                         begun     ? ": the row has begun, and a prefix is decoded whole"
                         : decodes ? ", what the row brings: a prefix is decoded whole"
                                   : "");
  }
  return TC_OK;
}

tc_status BatchCheck::sizes() {
  in_.sizes.B = batch_.B;
  in_.sizes.T = id_ == EntryEncode ? 1 : batch_.T;
  if (in_.sizes.T == 0 && takes(RoleImage)) in_.sizes.T = model_.fixed_seq;
  in_.sizes.S = is_encoder_decoder(model_) ? batch_.S : in_.sizes.T;
  return check_sizes(model_, id_, in_.sizes, message_);
}

tc_status BatchCheck::run() {
  tc_status status = undeclared();
  if (status == TC_OK) status = sizes();
  if (status == TC_OK) status = arrays();
  if (status == TC_OK && id_ != EntryEncode) status = masks(false);
  if (status == TC_OK && is_encoder_decoder(model_)) status = masks(true);
  if (status == TC_OK) status = ids(RoleTokens, "tokens", model_.vocab, false);
  if (status == TC_OK) status = ids(RoleTgt, "tgt", model_.vocab, false);
  if (status == TC_OK) status = ids(RoleSrc, "src", model_.src_vocab, true);
  if (status == TC_OK) status = ids(RoleTypes, "types", model_.types, false);
  if (status == TC_OK && id_ != EntryEncode) status = positions(false);
  if (status == TC_OK) status = positions(true);
  if (status == TC_OK) status = prefix();
  if (status == TC_OK) status = check_heads(model_, id_, batch_, in_, message_);
  return status;
}

tc_status check_size(const char* name, int64_t value, int64_t fixed, int64_t most, Message& message) {
  if (value < 1) return message.fail(TC_E_ARGUMENT, "%s is %lld, expected at least 1", name, Long{value});
  if (fixed > 0 && value != fixed) {
    return message.fail(TC_E_ARGUMENT, "%s is %lld, but the model was compiled for %lld", name, Long{value},
                        Long{fixed});
  }
  if (most > 0 && value > most) {
    return message.fail(TC_E_ARGUMENT, "%s is %lld, expected at most %lld (max_seq)", name, Long{value},
                        Long{most});
  }
  if (value > INT32_MAX)
    return message.fail(TC_E_ARGUMENT, "%s is %lld, expected less than 2^31", name, Long{value});
  return TC_OK;
}

}  // namespace

bool Inputs::real(int64_t row, int64_t token, bool source) const {
  const uint8_t* mask = static_cast<const uint8_t*>(roles[source ? RoleSrcMask : RoleMask]);
  const int32_t* row_lengths = source ? src_lengths : lengths;
  if (mask) return mask[row * (source ? sizes.S : sizes.T) + token] != 0;
  return !row_lengths || token < row_lengths[row];
}

tc_status check_sizes(const ModelDesc& model, EntryId entry, const Sizes& sizes, Message& message) {
  if (entry == EntryStep || entry == EntryMerge) return TC_OK;
  const bool cached = entry == EntryDecode;  // limited by the cache's capacity, any split
  tc_status status = check_size("B", sizes.B, model.fixed_batch, 0, message);
  if (status == TC_OK && entry != EntryEncode) {
    status = check_size("T", sizes.T, cached ? 0 : model.fixed_seq, cached ? 0 : model.max_seq, message);
  }
  if (status == TC_OK && is_encoder_decoder(model)) {
    status = check_size("S", sizes.S, model.fixed_src_seq, model.max_seq, message);
  }
  return status;
}

tc_status check_pointer(const char* name, const void* pointer, int64_t element_bytes, Message& message) {
  if (!pointer) return message.fail(TC_E_ARGUMENT, "%s is NULL", name);
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(element_bytes) != 0) {
    return message.fail(TC_E_ARGUMENT, "%s is not aligned to its elements of %d bytes", name,
                        static_cast<int>(element_bytes));
  }
  return TC_OK;
}

int64_t row_length(const Inputs& inputs, int64_t row) {
  int64_t length = 0;
  while (length < inputs.sizes.T && inputs.real(row, length, false)) ++length;
  return length;
}

tc_status check_batch(const ModelDesc& model, EntryId entry, const tc_batch* given, Inputs& inputs,
                      Message& message) {
  const Inputs of_cache = inputs;
  inputs = Inputs{};
  if (entry == EntryDecode) {
    inputs.cached = of_cache.cached;
    inputs.next_positions = of_cache.next_positions;
    inputs.last_documents = of_cache.last_documents;
  }
  tc_batch batch;
  const tc_status status = read_struct("batch", given, batch, message);
  if (status != TC_OK) return status;
  return BatchCheck(model, entry, batch, inputs, message).run();
}

}  // namespace tc
