// Questions about the model that several functions ask of its tables.
#pragma once

#include "runtime/message.h"
#include "runtime/plan.h"

namespace tc {

inline int64_t real_bytes(const ModelDesc& model) { return model.real == TypeF64 ? 8 : 4; }
inline int64_t block_bytes(const ModelDesc& model) { return model.parameter_block * real_bytes(model); }
inline int64_t gradient_bytes(const ModelDesc& model) { return model.gradient_block * real_bytes(model); }
inline bool is_encoder_decoder(const ModelDesc& model) { return model.kind == TC_KIND_ENCODER_DECODER; }

int64_t dtype_bytes(int32_t dtype);

/// The external of that role, or null.
const ExternalDesc* find_external(const EntryDesc& entry, Role role);
/// Does any entry take this input? Gives an external that has it, or null.
const ExternalDesc* find_input(const ModelDesc& model, Role role);
uint32_t declared_inputs(const ModelDesc& model);                           // bits TC_INPUT_...
const ParamDesc* find_parameter(const ModelDesc& model, const char* name);  // null: no such

/// TC_E_STATE with a sentence where the model has no such entry.
tc_status require_entry(const ModelDesc& model, EntryId entry, Message& message);

}  // namespace tc
