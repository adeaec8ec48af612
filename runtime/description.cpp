#include "runtime/description.h"

#include <string.h>

namespace tc {

static_assert(static_cast<int>(EntryInfer) == TC_ENTRY_INFER &&
              static_cast<int>(EntryTrain) == TC_ENTRY_TRAIN &&
              static_cast<int>(EntryEncode) == TC_ENTRY_ENCODE &&
              static_cast<int>(EntryMerge) == TC_ENTRY_MERGE && static_cast<int>(EntryEnd) == TC_ENTRY_COUNT);

int64_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case TypeF64:
      return 8;
    case TypeU8:
      return 1;
    default:
      return 4;
  }
}

const ExternalDesc* find_external(const EntryDesc& entry, Role role) {
  for (int32_t i = 0; i < entry.external_count; ++i) {
    if (entry.externals[i].role == role) return &entry.externals[i];
  }
  return nullptr;
}

const ExternalDesc* find_input(const ModelDesc& model, Role role) {
  for (const EntryDesc& entry : model.entries) {
    if (!entry.present) continue;
    if (const ExternalDesc* external = find_external(entry, role)) return external;
  }
  return nullptr;
}

uint32_t declared_inputs(const ModelDesc& model) {
  struct {
    Role role;
    uint32_t bit, float_bit;
  } const inputs[] = {{RoleTokens, TC_INPUT_TOKENS, 0},
                      {RoleX, TC_INPUT_X, 0},
                      {RoleSrc, TC_INPUT_SRC, TC_INPUT_SRC_IS_FLOAT},
                      {RoleTgt, TC_INPUT_TGT, TC_INPUT_TGT_IS_FLOAT},
                      {RoleMemory, TC_INPUT_MEMORY, 0},
                      {RoleTypes, TC_INPUT_TYPES, 0},
                      {RoleImage, TC_INPUT_IMAGE, 0}};
  uint32_t bits = 0;
  for (const auto& input : inputs) {
    const ExternalDesc* external = find_input(model, input.role);
    if (!external) continue;
    bits |= input.bit;
    if (external->dtype != TypeI32) bits |= input.float_bit;
  }
  for (int32_t head = 0; head < model.head_count; ++head) {
    if (find_input(model, head_role(RoleTargets, head))) bits |= TC_INPUT_TARGETS;
  }
  struct {
    int32_t declared;
    uint32_t bit, source_bit;
  } const optional[] = {{model.has_mask, TC_INPUT_MASK, TC_INPUT_SRC_MASK},
                        {model.has_lengths, TC_INPUT_LENGTHS, TC_INPUT_SRC_LENGTHS},
                        {model.has_positions, TC_INPUT_POSITIONS, TC_INPUT_SRC_POSITIONS},
                        {model.has_documents, TC_INPUT_DOCUMENTS, TC_INPUT_SRC_DOCUMENTS},
                        {model.has_prefix, TC_INPUT_PREFIX, 0},
                        {model.has_weights, TC_INPUT_WEIGHTS, 0}};
  for (const auto& input : optional) {
    if (!input.declared) continue;
    bits |= input.bit;
    if (is_encoder_decoder(model)) bits |= input.source_bit;
  }
  return bits;
}

const ParamDesc* find_parameter(const ModelDesc& model, const char* name) {
  for (int32_t i = 0; name && i < model.param_count; ++i) {
    if (strcmp(model.params[i].name, name) == 0) return &model.params[i];
  }
  return nullptr;
}

tc_status require_entry(const ModelDesc& model, EntryId entry, Message& message) {
  static const char* const kWhat[EntryEnd] = {
      "forward",        "forward with last", "loss", "logprobs", "backward", "vjp", "step", "decode",
      "encoder to run", "low-rank adapters"};
  if (model.entries[entry].present) return TC_OK;
  return message.fail(TC_E_STATE, "the model %s has no %s, or was compiled without it", model.name,
                      kWhat[entry]);
}

}  // namespace tc
