// Who runs the tasks of a kernel: a session's threads, the caller's parallel_for, or the calling thread
// alone. Tasks are independent and results do not depend on who runs which.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include <atomic>

#include "runtime/api.h"
#include "runtime/floating_point.h"

namespace tc {

constexpr int kMaxThreads = 256;

/// Runs tasks first..last-1. worker < threads: no two calls run at the same time with one worker number.
struct Work {
  void (*run)(const void* self, int64_t first, int64_t last, int worker);
  const void* self;
};

/// Threads that wait for work: they spin briefly, then sleep. The calling thread takes part as worker 0; a
/// helper that comes too late for a job is not waited for.
///
/// `state_` holds the job's number, an open bit, and how many helpers are inside. A helper enters an open job
/// by counting itself in with one compare-and-swap, so once the caller has closed the job and the count is
/// zero nobody reads the job's fields any more.
class Pool {
 public:
  /// Threads are started by the first job; threads-1 helpers, fewer where the system gives no more.
  void configure(int threads);
  void run(const Work& work, int64_t tasks, Denormals denormals);
  /// Ends the helpers. In a fork's child there are none: their memory is merely forgotten.
  void stop();

 private:
  struct Helper {
    Pool* pool;
    int worker;
    uint64_t seen;
  };

  /// A worker's part of the tasks: which job the word is of, and how many are taken. A word of an earlier job means
  /// none. Words of two workers are on lines of cache of their own.
  struct Share {
    std::atomic<uint64_t> taken{0};
    char apart[56];
  };

  static void* helper_main(void* argument);
  void help(Helper& helper);
  bool enter(uint64_t& seen);
  bool wait_for_job(uint64_t seen) const;
  void leave();
  void start();
  void take_tasks(int worker);
  void take_share(int share, uint64_t job, int worker);
  void forget_shares();
  void open_job();
  void close_job();

  std::atomic<uint64_t> state_{0};
  std::atomic<uint32_t> wake_{0};  // futex: changes with each job
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint32_t> idle_{0};  // futex: changes when the last helper leaves a job that is waited for
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint32_t> ending_{0};
  Work work_{};
  int64_t tasks_ = 0;
  Denormals denormals_ = Denormals::Keep;
  int threads_ = 1, started_ = 0, spins_ = 0;
  pid_t owner_ = 0;
  Share shares_[kMaxThreads];
  pthread_t handles_[kMaxThreads];
  Helper helpers_[kMaxThreads];
};

/// What a call runs its tasks with.
struct Executor {
  Pool* pool = nullptr;  // null: the calling thread, or the hook
  void (*parallel_for)(void*, int64_t, void (*)(void*, int64_t), void*) = nullptr;
  void* user = nullptr;
  int threads = 1;
  Denormals denormals = Denormals::Keep;

  void run_serial(const Work& work, int64_t tasks) const;
  void run(const Work& work, int64_t tasks) const;
};

/// Cores that this process may use; at least 1, at most kMaxThreads.
int available_cores();

}  // namespace tc
