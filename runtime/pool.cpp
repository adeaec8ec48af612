#include "runtime/pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tc {

namespace {

constexpr uint64_t kOpen = 1u << 16;
constexpr uint64_t kInside = kOpen - 1;  // helpers inside
constexpr uint64_t kJob = kOpen << 1;    // one job further
// A share's word is the job's number, counted up to kJobs, times kTaken, and how many of its tasks are taken.
constexpr uint64_t kTaken = uint64_t{1} << 40;
constexpr uint64_t kJobs = ~uint64_t{0} / kTaken + 1;
constexpr int64_t kPieces = 4;           // of what is left of a share one is taken at a time
constexpr int kSpins = 2000;             // some 50 us: longer than the gaps between the kernels of a call
constexpr int kFewSpins = 50;            // where there are more threads than cores

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  long cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 1) cores = 1;
  return cores > kMaxThreads ? kMaxThreads : static_cast<int>(cores);
}

void Pool::configure(int threads) {
  threads_ = threads;
  spins_ = threads > available_cores() ? kFewSpins : kSpins;
}

void* Pool::helper_main(void* argument) {
  Helper& helper = *static_cast<Helper*>(argument);
  helper.pool->help(helper);
  return nullptr;
}

void Pool::start() {
  state_ = 0;
  wake_ = sleepers_ = idle_ = waiting_ = ending_ = 0;
  forget_shares();
  owner_ = getpid();
  // The host's signals are for the host's threads.
  sigset_t all, host;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &host);
  started_ = 0;
  while (started_ < threads_ - 1) {
    helpers_[started_] = {this, started_ + 1, 0};
    if (pthread_create(&handles_[started_], nullptr, helper_main, &helpers_[started_]) != 0) break;
    ++started_;
  }
  pthread_sigmask(SIG_SETMASK, &host, nullptr);
}

void Pool::stop() {
  if (owner_ == getpid()) {
    ending_ = 1;
    wake_.fetch_add(1);
    futex_wake(wake_, kMaxThreads);
    for (int i = 0; i < started_; ++i) pthread_join(handles_[i], nullptr);
  }
  started_ = 0;
  owner_ = 0;
}

bool Pool::wait_for_job(uint64_t seen) const {
  const uint64_t state = state_.load();
  return (!(state & kOpen) || state / kJob == seen) && !ending_.load();
}

/// Counts this helper into the open job that it has not seen. False: the pool ends.
bool Pool::enter(uint64_t& seen) {
  for (;;) {
    for (int spin = 0; spin < spins_ && wait_for_job(seen); ++spin) pause();
    while (wait_for_job(seen)) {
      const uint32_t word = wake_.load();
      sleepers_.fetch_add(1);
      // A job opened before `word` was read is visible here; one opened later has changed the word.
      if (wait_for_job(seen)) futex_wait(wake_, word);
      sleepers_.fetch_sub(1);
    }
    if (ending_.load()) return false;
    uint64_t state = state_.load();
    if ((state & kOpen) && state / kJob != seen && state_.compare_exchange_strong(state, state + 1)) {
      seen = state / kJob;
      return true;
    }
  }
}

void Pool::leave() {
  if ((state_.fetch_sub(1) & kInside) == 1 && waiting_.load()) {
    idle_.fetch_add(1);
    futex_wake(idle_, 1);
  }
}

/// Fewer tasks at a time the fewer are left (guided self-scheduling, Polychronopoulos and Kuck 1987), so that a slow
/// thread does not hold up the others at the end.
void Pool::take_share(int share, uint64_t job, int worker) {
  const int64_t begin = tasks_ * share / threads_, size = tasks_ * (share + 1) / threads_ - begin;
  std::atomic<uint64_t>& word = shares_[share].taken;
  for (;;) {
    uint64_t seen = word.load(std::memory_order_relaxed);
    int64_t taken, count;
    do {
      taken = seen / kTaken == job ? static_cast<int64_t>(seen % kTaken) : 0;
      if (taken >= size) return;
      count = (size - taken) / kPieces;
      if (count < 1) count = 1;
    } while (!word.compare_exchange_weak(seen, job * kTaken + static_cast<uint64_t>(taken + count),
                                         std::memory_order_relaxed));
    work_.run(work_.self, begin + taken, begin + taken + count, worker);
  }
}

/// A worker begins with its own share of the tasks, which is the same part of the rows in one kernel after the other
/// where they are cut alike: what it wrote is in the caches of its own core. Then it takes from the others'.
void Pool::take_tasks(int worker) {
  const uint64_t job = state_.load(std::memory_order_relaxed) / kJob % kJobs;
  for (int i = 0; i < threads_; ++i) take_share((worker + i) % threads_, job, worker);
}

void Pool::help(Helper& helper) {
  while (enter(helper.seen)) {
    {
      const FloatingPointScope scope(denormals_);
      take_tasks(helper.worker);
    }
    leave();
  }
}

/// Before job numbers begin anew: no share may remember an earlier job of the same number.
void Pool::forget_shares() {
  for (int i = 0; i < threads_; ++i) shares_[i].taken.store(0, std::memory_order_relaxed);
}

void Pool::open_job() {
  const uint64_t job = state_.load() / kJob + 1;
  if (job % kJobs == 0) forget_shares();
  state_.store(job * kJob + kOpen);
  wake_.fetch_add(1);
  if (sleepers_.load() > 0) futex_wake(wake_, started_);
}

void Pool::close_job() {
  state_.fetch_and(~kOpen);
  for (int spin = 0; spin < spins_; ++spin) {
    if (!(state_.load() & kInside)) return;
    pause();
  }
  waiting_ = 1;
  for (;;) {
    const uint32_t word = idle_.load();
    if (!(state_.load() & kInside)) break;
    futex_wait(idle_, word);
  }
  waiting_ = 0;
}

void Pool::run(const Work& work, int64_t tasks, Denormals denormals) {
  if (owner_ != getpid()) start();
  work_ = work;
  tasks_ = tasks;
  denormals_ = denormals;
  open_job();
  {
    const FloatingPointScope scope(denormals);
    take_tasks(0);
  }
  close_job();
}

namespace {

/// One call of the caller's parallel_for. Worker numbers are lent to whoever runs a task.
struct HookJob {
  const Work& work;
  Denormals denormals;
  int threads;
  std::atomic<uint8_t> taken[kMaxThreads];

  int take_worker() {
    for (;;) {
      for (int i = 0; i < threads; ++i) {
        if (!taken[i].exchange(1, std::memory_order_acquire)) return i;
      }
      sched_yield();
    }
  }
};

void run_hook_task(void* argument, int64_t task) {
  HookJob& job = *static_cast<HookJob*>(argument);
  const int worker = job.take_worker();
  {
    const FloatingPointScope scope(job.denormals);
    job.work.run(job.work.self, task, task + 1, worker);
  }
  job.taken[worker].store(0, std::memory_order_release);
}

}  // namespace

void Executor::run_serial(const Work& work, int64_t tasks) const {
  const FloatingPointScope scope(denormals);
  work.run(work.self, 0, tasks, 0);
}

void Executor::run(const Work& work, int64_t tasks) const {
  if (tasks <= 0) return;
  if (parallel_for) {
    HookJob job{work, denormals, threads, {}};
    parallel_for(user, tasks, run_hook_task, &job);
  } else if (pool && threads > 1 && tasks > 1) {
    pool->run(work, tasks, denormals);
  } else {
    run_serial(work, tasks);
  }
}

}  // namespace tc
