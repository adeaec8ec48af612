// Edits of values inside the model: what a session's caller has set, and the table of it that kernels read.
#pragma once

#include "runtime/frame.h"
#include "runtime/memory.h"

namespace tc {

/// A copy of an array that the caller gave, its rows widened to those of the value.
struct EditArray {
  Block memory;
  int32_t rank = 0;  // as it was given
  int64_t shape[4] = {};
};

/// Of one of the model's edits. `how` has an EditHow for each element that `where` named.
struct Edit {
  EditArray value, how;
  bool is_set() const { return value.memory.data != nullptr; }
};

/// Do all that are set fit the values that `entry` has at these sizes?
tc_status check_edits(const ModelDesc& model, const Edit* edits, EntryId entry, const Sizes& sizes,
                      Message& message);

/// What fits, into the frame's table.
void hold_edits(const ModelDesc& model, const Edit* edits, const Frame& frame, char* memory);

void release_edit(Edit& edit, Allocator& allocator);

}  // namespace tc
