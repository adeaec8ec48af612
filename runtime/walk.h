// Walks the records of one entry: resolves sizes and pointers, and hands the tasks of each kernel to the
// executor.
#pragma once

#include <stdint.h>

#include "runtime/api.h"
#include "runtime/expression.h"
#include "runtime/plan.h"
#include "runtime/pool.h"

namespace tc {

/// Work (flops + 4 * bytes) below which a record runs on one thread: about 20 us, some ten times what it
/// costs to wake the others.
constexpr int64_t kSerialWork = 1'500'000;

/// Everything that a walk reads besides the tables.
struct Bindings {
  Sizes sizes;
  char* spaces[SpaceConstant] = {};  // base of each block, by SpaceId; null where the entry has no use for it
  const void* roles[RoleEnd] = {};   // inputs and outputs, by role
};

/// What resolving an entry gives: one word for each argument, and each record's tasks and work. A session
/// keeps it from call to call; sizes and bases say for which calls it holds.
struct Resolved {
  Bindings bound;
  int64_t valid;
  struct Run {
    int64_t tasks, work;
  };
  Run* runs;            // by record
  int64_t* slots;       // by argument of the entry
  int64_t* loop_slots;  // of one record inside a loop
};

int64_t resolved_bytes(const EntryDesc& entry);
/// Lays a Resolved out in that much memory, valid for no call.
Resolved* place_resolved(const EntryDesc& entry, char* memory);

/// Where the caller wants the time of an entry's records; null: nowhere.
struct Profile {
  tc_record* records = nullptr;
  int64_t count = 0;
};

struct Walk {
  const ModelDesc* model;
  const EntryDesc* entry;
  const Bindings* bindings;
  Resolved* resolved;
  char* scratch;
  int64_t scratch_stride;  // bytes per worker
  const Executor* executor;
  int (*cancelled)(void*) = nullptr;  // asked before each kernel
  void* user = nullptr;
  Profile profile = {};
};

/// False: the hook cancelled.
bool run_entry(const Walk& walk);

}  // namespace tc
