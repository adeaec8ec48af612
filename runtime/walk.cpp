#include "runtime/walk.h"

#include <string.h>
#include <time.h>

#include "runtime/memory.h"

namespace tc {

namespace {

int64_t largest_record(const EntryDesc& entry) {
  int64_t most = 0;
  for (int32_t i = 0; i < entry.record_count; ++i) {
    if (entry.records[i].arg_count > most) most = entry.records[i].arg_count;
  }
  return most;
}

bool same_layout(const Bindings& a, const Bindings& b) {
  return memcmp(&a.sizes, &b.sizes, sizeof a.sizes) == 0 && memcmp(a.spaces, b.spaces, sizeof a.spaces) == 0;
}

struct KernelCall {
  Kernel kernel;
  const int64_t* slots;
  char* scratch;
  int64_t scratch_stride;
};

void run_kernel(const void* self, int64_t first, int64_t last, int worker) {
  const KernelCall& call = *static_cast<const KernelCall*>(self);
  call.kernel(call.slots, first, last, call.scratch + worker * call.scratch_stride);
}

int64_t nanoseconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class Walker {
 public:
  explicit Walker(const Walk& walk)
      : walk_(walk), entry_(*walk.entry), resolved_(*walk.resolved), sizes_(walk.bindings->sizes) {}

  bool run();

 private:
  const uint8_t* program(int64_t start) const { return walk_.model->code + start; }
  int64_t slot(const ArgDesc& arg) const;
  void resolve();
  void bind_externals();
  bool call(const RecordDesc& record, const Resolved::Run& run, const int64_t* slots);
  void hand_out(const RecordDesc& record, const Resolved::Run& run, const int64_t* slots);
  bool call_in_loop(const RecordDesc& record);
  bool loop(int32_t begin, int32_t end);

  const Walk& walk_;
  const EntryDesc& entry_;
  Resolved& resolved_;
  Sizes sizes_;
};

int64_t Walker::slot(const ArgDesc& arg) const {
  const int64_t value = arg.space == SpaceNull ? 0 : evaluate(program(arg.value), sizes_);
  const char* base = nullptr;
  switch (arg.space) {
    case SpaceNull:
      return 0;
    case SpaceInteger:
      return value;
    case SpaceConstant:
      base = reinterpret_cast<const char*>(walk_.model->constants[arg.index]);
      break;
    case SpaceExternal:
      base = static_cast<const char*>(walk_.bindings->roles[entry_.externals[arg.index].role]);
      break;
    default:
      base = walk_.bindings->spaces[arg.space];
  }
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(base)) + value;
}

/// Arguments of records outside loops; those inside are resolved in each iteration.
void Walker::resolve() {
  bool inside = false;
  for (int32_t i = 0; i < entry_.record_count; ++i) {
    const RecordDesc& record = entry_.records[i];
    resolved_.runs[i].tasks = evaluate(program(record.tasks), sizes_);
    if (record.kind == RecordLoopBegin) inside = true;
    if (record.kind == RecordLoopEnd) inside = false;
    if (record.kind != RecordCall || inside) continue;
    resolved_.runs[i].work = evaluate(program(record.work), sizes_);
    for (int32_t a = record.first_arg; a < record.first_arg + record.arg_count; ++a) {
      resolved_.slots[a] = slot(entry_.args[a]);
    }
  }
  resolved_.bound = *walk_.bindings;
  resolved_.valid = 1;
}

/// The caller's arrays move from call to call while all else stays.
void Walker::bind_externals() {
  for (int32_t a = 0; a < entry_.arg_count; ++a) {
    if (entry_.args[a].space == SpaceExternal) resolved_.slots[a] = slot(entry_.args[a]);
  }
}

bool Walker::call(const RecordDesc& record, const Resolved::Run& run, const int64_t* slots) {
  if (walk_.cancelled && walk_.cancelled(walk_.user)) return false;
  if (run.tasks <= 0) return true;
  const int64_t number = &record - entry_.records;
  if (number >= walk_.profile.count) {
    hand_out(record, run, slots);
    return true;
  }
  const int64_t start = nanoseconds_now();
  hand_out(record, run, slots);
  walk_.profile.records[number].nanoseconds += nanoseconds_now() - start;
  ++walk_.profile.records[number].calls;
  return true;
}

void Walker::hand_out(const RecordDesc& record, const Resolved::Run& run, const int64_t* slots) {
  const KernelCall call{walk_.model->kernels[record.kernel], slots, walk_.scratch, walk_.scratch_stride};
  const Work work{run_kernel, &call};
  const Executor& executor = *walk_.executor;
  // A caller's parallel_for gets every record that has tasks to hand out: what is too small is for it to say.
  if (run.tasks > 1 && (executor.parallel_for || run.work >= kSerialWork)) {
    executor.run(work, run.tasks);
  } else {
    executor.run_serial(work, run.tasks);
  }
}

bool Walker::call_in_loop(const RecordDesc& record) {
  for (int32_t a = 0; a < record.arg_count; ++a) {
    resolved_.loop_slots[a] = slot(entry_.args[record.first_arg + a]);
  }
  const Resolved::Run run{evaluate(program(record.tasks), sizes_), evaluate(program(record.work), sizes_)};
  return call(record, run, resolved_.loop_slots);
}

/// Records begin+1..end-1, once for each value of I.
bool Walker::loop(int32_t begin, int32_t end) {
  const int64_t iterations = resolved_.runs[begin].tasks;
  for (sizes_.I = 0; sizes_.I < iterations; ++sizes_.I) {
    for (int32_t i = begin + 1; i < end; ++i) {
      if (!call_in_loop(entry_.records[i])) return false;
    }
  }
  sizes_.I = 0;
  return true;
}

bool Walker::run() {
  if (resolved_.valid && same_layout(resolved_.bound, *walk_.bindings)) {
    bind_externals();
  } else {
    resolve();
  }
  for (int32_t i = 0; i < entry_.record_count; ++i) {
    const RecordDesc& record = entry_.records[i];
    if (record.kind == RecordLoopBegin) {
      int32_t end = i + 1;
      while (end < entry_.record_count && entry_.records[end].kind != RecordLoopEnd) ++end;
      if (!loop(i, end)) return false;
      i = end;
    } else if (!call(record, resolved_.runs[i], resolved_.slots + record.first_arg)) {
      return false;
    }
  }
  return true;
}

}  // namespace

int64_t resolved_bytes(const EntryDesc& entry) {
  const int64_t words = entry.arg_count + largest_record(entry);
  return align_up(static_cast<int64_t>(sizeof(Resolved)) +
                  entry.record_count * static_cast<int64_t>(sizeof(Resolved::Run)) +
                  words * static_cast<int64_t>(sizeof(int64_t)));
}

Resolved* place_resolved(const EntryDesc& entry, char* memory) {
  Resolved* resolved = reinterpret_cast<Resolved*>(memory);
  resolved->valid = 0;
  resolved->runs = reinterpret_cast<Resolved::Run*>(memory + sizeof(Resolved));
  resolved->slots = reinterpret_cast<int64_t*>(resolved->runs + entry.record_count);
  resolved->loop_slots = resolved->slots + entry.arg_count;
  return resolved;
}

bool run_entry(const Walk& walk) { return Walker(walk).run(); }

}  // namespace tc
