// The workspace of one call: what the run time itself puts there (masks that the caller did not give,
// scalars, gradients that nobody asked for), the plan's buffers, and each thread's scratch. All sizes are
// exact and known before.
#pragma once

#include "runtime/batch.h"
#include "runtime/walk.h"

namespace tc {

struct Frame {
  EntryId entry = EntryInfer;
  Sizes sizes;
  int64_t held[RoleEnd];  // offset of what is held here for a role; -1: nothing is
  int64_t edits = 0;      // offset of the table of edits, which is there where the entry has some
  int64_t planned = 0;    // offset of the plan's buffers
  int64_t scratch = 0, scratch_stride = 0;
  int64_t bytes = 0;  // of all, a multiple of 64; kMost: beyond any memory
};

Frame frame_of(const ModelDesc& model, EntryId entry, const Sizes& sizes, int threads);

/// Pointers for a walk in `memory`: the caller's inputs, held values for the rest (masks written out); no edit is set.
/// Outputs that the caller provides are set in bindings.roles afterwards.
void bind_frame(const ModelDesc& model, const Frame& frame, char* memory, const Inputs& inputs, Bindings& bindings);

/// A scalar that is held in the frame.
inline double& held_number(const Frame& frame, char* memory, Role role) {
  return *reinterpret_cast<double*>(memory + frame.held[role]);
}

/// What dropout draws from, where the entry has any.
void hold_dropout(const Frame& frame, char* memory, uint64_t seed, uint64_t call, bool drops);

/// The optimizer's settings as its kernels read them.
struct Update {
  tc_adamw settings;
  uint64_t step;  // 1 for the first
  double count;   // the divisor
};
void hold_update(const ModelDesc& model, const Frame& frame, char* memory, const Update& update);

/// Hyper-parameters, before anything runs.
tc_status check_update(const ModelDesc& model, const tc_adamw* given, tc_adamw& settings, Message& message);

}  // namespace tc
