// What a model's heads take and give in a call: targets and weights, losses.
#pragma once

#include "runtime/batch.h"
#include "runtime/frame.h"

namespace tc {

/// What an array of a head is called in messages: "targets[0]" of the only one, "targets.NAME" where heads have names.
struct HeadArray {
  HeadArray(const char* array, const HeadDesc& head);
  char text[96];
};

/// The targets and weights that `entry` takes of each head: there, aligned, in range where they count.
tc_status check_heads(const ModelDesc& model, EntryId entry, const tc_batch& batch, Inputs& inputs, Message& message);

/// Where the caller wants each head's output, or has its upstream gradient. `name` is the array's in messages. Entries
/// with one output alone (last, decode) take the first pointer.
tc_status bind_heads(const ModelDesc& model, EntryId entry, Role role, const char* name, const void* const* arrays,
                     const void** roles, Message& message);

/// Losses of one call, by head; zeros where a head has none.
struct Losses {
  double sums[kMostHeads] = {}, counts[kMostHeads] = {};
};
Losses losses_of(const ModelDesc& model, const Frame& frame, char* memory);

/// The whole loss of a call. Of one head with a loss: its sum and count. Of several heads each has a divisor of its own,
/// so that the sum is that of their means, each times its loss_weight, and counts as one (as none where no target
/// counts).
struct Loss {
  double sum = 0, count = 0;
  double mean() const { return mean_of(sum, count); }
};
Loss whole_loss(const ModelDesc& model, const Losses& losses);

/// Do gradients come as those of the means, because there are several losses?
bool has_several_losses(const ModelDesc& model);

}  // namespace tc
