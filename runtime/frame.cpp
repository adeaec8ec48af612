#include "runtime/frame.h"

#include <stdio.h>
#include <string.h>

#include "runtime/floating_point.h"
#include "runtime/memory.h"
#include "runtime/structs.h"

namespace tc {

namespace {

/// Is this role's memory in the frame unless the caller brings it?
bool is_held(int32_t role) {
  if (role >= RoleHeads) role = RoleHeads + (role - RoleHeads) % kHeadRoles;
  switch (role) {
    case RoleWeights:
    case RoleLossSum:
    case RoleLossCount:
    case RoleMask:
    case RoleSrcMask:
    case RolePositions:
    case RoleDocuments:
    case RolePrefix:
    case RoleSrcPositions:
    case RoleSrcDocuments:
    case RoleMean:
    case RoleDropout:
    case RoleCount:
    case RoleClip:
    case RoleHyper:
    case RoleLrScale:
    case RoleDecay:
    case RoleNorm:
    case RoleGradX:
    case RoleGradSrc:
    case RoleGradTgt:
    case RoleGradMemory:
    case RoleGradImage:
      return true;
    default:
      return false;
  }
}

int64_t external_bytes(const ModelDesc& model, const ExternalDesc& external, const Sizes& sizes) {
  int64_t bytes = dtype_bytes(external.dtype);
  for (int32_t i = 0; i < external.rank; ++i)
    bytes = times(bytes, evaluate(model.code + external.dims[i], sizes));
  return bytes;
}

int64_t edit_bytes(const ModelDesc& model, const EntryDesc& entry) {
  return entry.edit_count > 0 ? model.edit_count * static_cast<int64_t>(sizeof(EditEntry)) : 0;
}

void write_mask(char* target, int64_t rows, int64_t tokens, const int32_t* lengths) {
  if (!lengths) {
    memset(target, 1, static_cast<size_t>(rows * tokens));
    return;
  }
  for (int64_t b = 0; b < rows; ++b) {
    memset(target + b * tokens, 1, static_cast<size_t>(lengths[b]));
    memset(target + b * tokens + lengths[b], 0, static_cast<size_t>(tokens - lengths[b]));
  }
}

/// What a row's tokens are where the caller does not say: positions that count on from the row's next one, or the
/// document that it is in.
void write_tokens(char* target, int64_t rows, int64_t tokens, const int32_t* first, int32_t step) {
  int32_t* values = reinterpret_cast<int32_t*>(target);
  for (int64_t b = 0; b < rows; ++b) {
    const int32_t begin = first ? first[b] : 0;
    for (int64_t t = 0; t < tokens; ++t) values[b * tokens + t] = begin + step * static_cast<int32_t>(t);
  }
}

/// Where the caller has no weights, each target weighs 1.
void write_ones(const ModelDesc& model, char* target, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    if (model.real == TypeF64) {
      reinterpret_cast<double*>(target)[row] = 1;
    } else {
      reinterpret_cast<float*>(target)[row] = 1;
    }
  }
}

tc_status check_number(const char* name, double value, double below, Message& message) {
  if (value >= 0 && value < below) return TC_OK;  // NaN fails too
  if (below == 1)
    return message.fail(TC_E_ARGUMENT, "%s is %g, expected at least 0 and less than 1", name, value);
  return message.fail(TC_E_ARGUMENT, "%s is %g, expected a finite number of at least 0", name, value);
}

}  // namespace

Frame frame_of(const ModelDesc& model, EntryId id, const Sizes& sizes, int threads) {
  const EntryDesc& entry = model.entries[id];
  Frame frame;
  frame.entry = id;
  frame.sizes = sizes;
  for (int64_t& offset : frame.held) offset = -1;
  int64_t bytes = 0;
  for (int32_t i = 0; i < entry.external_count; ++i) {
    const ExternalDesc& external = entry.externals[i];
    if (!is_held(external.role)) continue;
    frame.held[external.role] = bytes;
    bytes = plus(bytes, align_up(external_bytes(model, external, sizes)));
  }
  frame.edits = bytes;
  bytes = plus(bytes, align_up(edit_bytes(model, entry)));
  frame.planned = bytes;
  bytes = plus(bytes, align_up(evaluate(model.code + entry.workspace, sizes)));
  frame.scratch = bytes;
  frame.scratch_stride = align_up(evaluate(model.code + entry.scratch, sizes));
  frame.bytes = plus(bytes, times(frame.scratch_stride, threads));
  return frame;
}

void bind_frame(const ModelDesc& model, const Frame& frame, char* memory, const Inputs& inputs, Bindings& bindings) {
  bindings.sizes = frame.sizes;
  bindings.spaces[SpaceWorkspace] = memory + frame.planned;
  bindings.spaces[SpaceEdits] = memory + frame.edits;
  memset(memory + frame.edits, 0, static_cast<size_t>(edit_bytes(model, model.entries[frame.entry])));
  for (int role = 0; role < RoleEnd; ++role) {
    bindings.roles[role] = inputs.roles[role];
    if (!inputs.roles[role] && frame.held[role] >= 0) bindings.roles[role] = memory + frame.held[role];
  }
  const Sizes& s = frame.sizes;
  if (frame.held[RoleMask] >= 0 && !inputs.roles[RoleMask]) {
    write_mask(memory + frame.held[RoleMask], s.B, s.T, inputs.lengths);
  }
  if (frame.held[RoleSrcMask] >= 0 && !inputs.roles[RoleSrcMask]) {
    write_mask(memory + frame.held[RoleSrcMask], s.B, s.S, inputs.src_lengths);
  }
  for (int32_t head = 0; head < model.head_count; ++head) {
    const Role role = head_role(RoleWeights, head);
    if (frame.held[role] < 0 || inputs.roles[role]) continue;
    const HeadDesc& desc = model.heads[head];
    write_ones(model, memory + frame.held[role], s.B * (!desc.per_token ? 1 : desc.source ? s.S : s.T));
  }
  const struct {
    Role role;
    int64_t tokens;
    const int32_t* first;
    int32_t step;
  } tokens[] = {{RolePositions, s.T, inputs.next_positions ? inputs.next_positions : inputs.cached, 1},
                {RoleDocuments, s.T, inputs.last_documents, 0},
                {RolePrefix, 1, nullptr, 0},
                {RoleSrcPositions, s.S, nullptr, 1},
                {RoleSrcDocuments, s.S, nullptr, 0}};
  for (const auto& input : tokens) {
    if (frame.held[input.role] < 0 || inputs.roles[input.role]) continue;
    write_tokens(memory + frame.held[input.role], s.B, input.tokens, input.first, input.step);
  }
}

void hold_dropout(const Frame& frame, char* memory, uint64_t seed, uint64_t call, bool drops) {
  if (frame.held[RoleDropout] < 0) return;
  const uint64_t words[2] = {seed, call};  // low halves first, as this library's processors have them
  const int32_t flag = drops;
  memcpy(memory + frame.held[RoleDropout], words, sizeof words);
  memcpy(memory + frame.held[RoleDropout] + sizeof words, &flag, sizeof flag);
}

void hold_update(const ModelDesc& model, const Frame& frame, char* memory, const Update& update) {
  const tc_adamw& a = update.settings;
  const double hyper[8] = {a.lr, a.beta1, a.beta2, a.eps, a.weight_decay, static_cast<double>(update.step),
                           0,    0};
  const auto hold = [&](Role role, const double* values, int64_t count) {
    if (frame.held[role] >= 0)
      memcpy(memory + frame.held[role], values, static_cast<size_t>(count) * sizeof(double));
  };
  hold(RoleCount, &update.count, 1);
  hold(RoleClip, &a.clip, 1);
  hold(RoleHyper, hyper, 8);
  for (int32_t p = 0; p < model.param_count; ++p) {
    if (frame.held[RoleLrScale] >= 0)
      (&held_number(frame, memory, RoleLrScale))[p] = a.lr_scale ? a.lr_scale[p] : 1;
    const bool decayed = a.decay ? a.decay[p] != 0 : model.params[p].decayed != 0;
    if (frame.held[RoleDecay] >= 0) (&held_number(frame, memory, RoleDecay))[p] = decayed ? 1 : 0;
  }
}

tc_status check_update(const ModelDesc& model, const tc_adamw* given, tc_adamw& settings, Message& message) {
  const FloatingPointScope scope(Denormals::Keep);  // a comparison with NaN is an exception that the host may trap
  tc_status status = read_struct("adamw", given, settings, message);
  const double infinity = __builtin_inf();
  if (status == TC_OK) status = check_number("lr", settings.lr, infinity, message);
  if (status == TC_OK) status = check_number("beta1", settings.beta1, 1, message);
  if (status == TC_OK) status = check_number("beta2", settings.beta2, 1, message);
  if (status == TC_OK) status = check_number("eps", settings.eps, infinity, message);
  if (status == TC_OK) status = check_number("weight_decay", settings.weight_decay, infinity, message);
  if (status == TC_OK) status = check_number("clip", settings.clip, infinity, message);
  if (status == TC_OK) status = check_number("count", settings.count, infinity, message);
  for (int32_t p = 0; status == TC_OK && settings.lr_scale && p < model.param_count; ++p) {
    char name[160];
    const double scale = settings.lr_scale[p];
    if (scale >= 0 && scale < infinity) continue;
    snprintf(name, sizeof name, "lr_scale[%d] (%s)", p, model.params[p].name);
    status = check_number(name, scale, infinity, message);
  }
  return status;
}

}  // namespace tc
