// Checks a caller's batch before any work, and gives what an entry reads.
#pragma once

#include "runtime/description.h"
#include "runtime/expression.h"

namespace tc {

struct Inputs {
  Sizes sizes;
  const void* roles[RoleEnd] = {};   // what the caller gave; masks are null where there is none
  const int32_t* lengths = nullptr;  // [B], in place of a mask
  const int32_t* src_lengths = nullptr;
  const int32_t* src_documents = nullptr;  // [B,S]: as given to encode, which may not read them itself
  // What the cache of a decode says of its rows, [B]; null: nothing in it, 0, the length and 0.
  const int32_t* cached = nullptr;
  const int32_t* next_positions = nullptr;
  const int32_t* last_documents = nullptr;
  int64_t next_position(int64_t row) const {
    return next_positions ? next_positions[row] : cached ? cached[row] : 0;
  }

  /// Is the token real? `source`: of S, else of T.
  bool real(int64_t row, int64_t token, bool source) const;
};

/// Everything that `entry` takes. Decode: `inputs` comes with what the cache says of its rows; rows may be padded on the right alone; T is not limited by max_seq
/// here, and S and src_mask are the cache's, filled in by the caller.
tc_status check_batch(const ModelDesc& model, EntryId entry, const tc_batch* given, Inputs& inputs,
                      Message& message);

/// B, T, S as an entry may be asked for: positive, within max_seq and [shapes].
tc_status check_sizes(const ModelDesc& model, EntryId entry, const Sizes& sizes, Message& message);

/// An array of the caller: there, and aligned to its elements.
tc_status check_pointer(const char* name, const void* pointer, int64_t element_bytes, Message& message);

/// How many real tokens each row has, under a mask padded on the right (checked before).
int64_t row_length(const Inputs& inputs, int64_t row);

}  // namespace tc
