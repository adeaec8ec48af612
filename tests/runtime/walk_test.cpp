// Size programs, the walk over records and loops, and who runs which task.
#include "runtime/walk.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "fake_models.h"
#include "runtime/memory.h"
#include "runtime/random.h"
#include "table_builder.h"

namespace tc::test {
namespace {

int64_t value_of(const Expr& expr, const Sizes& sizes) {
  return evaluate(packed(expr).data(), sizes);
}

TEST(Expression, EvaluatesEveryOperation) {
  const Sizes sizes{2, 5, 7, 11, 3};
  EXPECT_EQ(value_of(12, sizes), 12);
  EXPECT_EQ(value_of(B + T * S, sizes), 37);
  EXPECT_EQ(value_of(C * I + Expr(-4), sizes), 29);
  EXPECT_EQ(value_of(ceildiv(T, 4), sizes), 2);
  EXPECT_EQ(value_of(ceildiv(T + Expr(3), 4), sizes), 2);
  EXPECT_EQ(value_of(min(T, S) * Expr(100) + max(T, S), sizes), 507);
}

TEST(Expression, ReadsNumbersOfAnyLength) {
  for (int bits = 0; bits < 63; ++bits) {
    for (int64_t number : {(int64_t{1} << bits) - 1, int64_t{1} << bits, -(int64_t{1} << bits)}) {
      EXPECT_EQ(value_of(number, {}), number);
      EXPECT_EQ(value_of(Expr(number) + Expr(0), {}), number);
    }
  }
  EXPECT_EQ(value_of(std::numeric_limits<int64_t>::max(), {}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(value_of(std::numeric_limits<int64_t>::min(), {}), std::numeric_limits<int64_t>::min());
}

TEST(Expression, KnowsNumbersThatNoCallChanges) {
  int64_t value = 0;
  EXPECT_TRUE(is_constant(packed(768).data(), value));
  EXPECT_EQ(value, 768);
  EXPECT_FALSE(is_constant(packed(B).data(), value));
  EXPECT_FALSE(is_constant(packed(Expr(768) * T).data(), value));
}

TEST(Expression, SaturatesInsteadOfWrapping) {
  const Sizes sizes{int64_t{1} << 40, int64_t{1} << 40, 1, 0, 0};
  EXPECT_EQ(value_of(B * T, sizes), kMost);
  EXPECT_EQ(value_of(B * T + Expr(1), sizes), kMost);
  EXPECT_EQ(value_of(ceildiv(B * T, 64) * Expr(64), sizes), kMost);
}

// -- who runs what
// ---------------------------------------------------------------------------------------------------------

struct Counting {
  std::unique_ptr<std::atomic<int>[]> runs;
  std::unique_ptr<std::atomic<int>[]> inside;  // by worker
  std::atomic<int> clashes{0};
  int64_t tasks;
  explicit Counting(int64_t count)
      : runs(new std::atomic<int>[static_cast<size_t>(count)]()),
        inside(new std::atomic<int>[kMaxThreads]()),
        tasks(count) {}
  static void run(const void* self, int64_t first, int64_t last, int worker) {
    Counting& counting = *static_cast<Counting*>(const_cast<void*>(self));
    if (counting.inside[worker].fetch_add(1) != 0) ++counting.clashes;
    for (int64_t task = first; task < last; ++task) ++counting.runs[task];
    counting.inside[worker].fetch_sub(1);
  }
  bool once_each() const {
    return clashes == 0 && std::all_of(runs.get(), runs.get() + tasks, [](const auto& n) { return n == 1; });
  }
};

bool runs_each_once(Pool& pool, int64_t tasks) {
  Counting counting(tasks);
  pool.run({Counting::run, &counting}, tasks, Denormals::Keep);
  return counting.once_each();
}

TEST(PoolTest, EveryTaskRunsOnceForAnyThreads) {
  for (int threads = 1; threads <= 4; ++threads) {
    auto pool = std::make_unique<Pool>();
    pool->configure(threads);
    for (int round = 0; round < 300; ++round) ASSERT_TRUE(runs_each_once(*pool, 1 + round % 50)) << threads;
    pool->stop();
  }
}

TEST(PoolTest, WakesHelpersThatSleep) {
  auto pool = std::make_unique<Pool>();
  pool->configure(3);
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(runs_each_once(*pool, 20));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pool->stop();
  EXPECT_TRUE(runs_each_once(*pool, 20));  // starts again
  pool->stop();
}

TEST(PoolTest, BeginsAnewAfterAnyNumberOfJobs) {
  for (int jobs = 0; jobs < 6; ++jobs) {
    auto pool = std::make_unique<Pool>();
    pool->configure(4);
    for (int round = 0; round < jobs; ++round) ASSERT_TRUE(runs_each_once(*pool, 20));
    pool->stop();
    for (int round = 0; round < 6; ++round) ASSERT_TRUE(runs_each_once(*pool, round + 1 < jobs ? 3 : 20)) << jobs;
    pool->stop();
  }
}

TEST(PoolTest, StopsWithoutEverHavingRun) {
  auto pool = std::make_unique<Pool>();
  pool->configure(4);
  pool->stop();
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow threads made after a fork of a threaded process
/// Returns once every thread of the pool runs a task, so none is still being made.
void meet(Pool& pool, int threads) {
  struct Meeting {
    int expected;
    std::atomic<int> here{0};
    static void run(const void* self, int64_t first, int64_t last, int) {
      Meeting& meeting = *static_cast<Meeting*>(const_cast<void*>(self));
      meeting.here += static_cast<int>(last - first);
      while (meeting.here < meeting.expected) std::this_thread::yield();
    }
  } meeting{threads};
  pool.run({Meeting::run, &meeting}, threads, Denormals::Keep);
}

TEST(PoolTest, AForksChildMakesItsOwnThreads) {
  auto pool = std::make_unique<Pool>();
  pool->configure(3);
  // A thread in the making may hold the address sanitizer's allocator, which a child could then never take.
  meet(*pool, 3);
  ASSERT_TRUE(runs_each_once(*pool, 20));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool fine = runs_each_once(*pool, 20) && runs_each_once(*pool, 3);
    pool->stop();
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(runs_each_once(*pool, 20));
  pool->stop();
}
#endif

// -- the caller's parallel_for
// ---------------------------------------------------------------------------------------------

using Body = void (*)(void*, int64_t);

void backwards(void* calls, int64_t tasks, Body body, void* arg) {
  ++*static_cast<int*>(calls);
  for (int64_t task = tasks; task-- > 0;) body(arg, task);
}

void at_random(void* calls, int64_t tasks, Body body, void* arg) {
  std::vector<int64_t> order(static_cast<size_t>(tasks));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(static_cast<unsigned>((*static_cast<int*>(calls))++));
  std::shuffle(order.begin(), order.end(), random);
  for (int64_t task : order) body(arg, task);
}

void in_threads(void* calls, int64_t tasks, Body body, void* arg) {
  ++*static_cast<int*>(calls);
  std::vector<std::thread> threads;
  for (int64_t task = 0; task < tasks; ++task) threads.emplace_back(body, arg, task);
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> forward(const tc_options& options) {
  const Fixture f(decoder(), options);
  const int32_t tokens[12] = {1, 5, 9, 2, 7, 3, 15, 0, 4, 4, 11, 6};
  tc_batch batch = batch_of(2, 6);
  batch.tokens = tokens;
  std::vector<float> out(12 * kVocab);
  void* outputs[1] = {out.data()};
  EXPECT_EQ(tc_rt_forward(f.session, &batch, 0, outputs), TC_OK) << f.message();
  return out;
}

TEST(Determinism, SameBitsForAnyThreadsAndAnyHook) {
  const std::vector<float> serial = forward(options_of(1));
  EXPECT_NE(serial[0], serial[kVocab]);
  for (int threads = 2; threads <= 4; ++threads) EXPECT_EQ(forward(options_of(threads)), serial) << threads;
  for (auto hook : {backwards, at_random, in_threads}) {
    int calls = 0;
    tc_options options = options_of(2);  // two scratch areas for six threads: they are lent out
    options.parallel_for = hook;
    options.user = &calls;
    EXPECT_EQ(forward(options), serial);
    EXPECT_GT(calls, 1);
  }
}

// -- records and loops
// -----------------------------------------------------------------------------------------------------

void store_sum(const int64_t* slots, int64_t first, int64_t last, void*) {
  int64_t* out = reinterpret_cast<int64_t*>(slots[0]);
  for (int64_t task = first; task < last; ++task) out[task] = out[task] * 10 + slots[1] + slots[2];
}

TEST(Walk, LoopsResolveTheirArgumentsInEachIteration) {
  TableBuilder t("loops");
  t.begin(EntryInfer, 64);
  t.call(store_sum, 2, {in(SpaceWorkspace), number(T), null()});
  t.loop(B);
  t.call(store_sum, I, {in(SpaceWorkspace), number(I), null()});  // no task in the first iteration
  t.call(store_sum, 1, {in(SpaceWorkspace, I * Expr(8)), number(5), null()});
  t.end_loop();
  t.call(store_sum, 2, {in(SpaceWorkspace), number(7), null()});
  const ModelDesc& desc = t.finish();
  const EntryDesc& entry = desc.entries[EntryInfer];
  alignas(64) char tables[4096];
  ASSERT_LE(resolved_bytes(entry), static_cast<int64_t>(sizeof tables));
  Resolved* resolved = place_resolved(entry, tables);
  alignas(64) int64_t workspace[8];
  Bindings bindings;
  bindings.sizes = {3, 1, 1, 0, 0};
  bindings.spaces[SpaceWorkspace] = reinterpret_cast<char*>(workspace);
  Executor executor;
  for (int round = 0; round < 2; ++round) {  // the second finds everything resolved
    std::memset(workspace, 0, sizeof workspace);
    EXPECT_TRUE(run_entry({&desc, &entry, &bindings, resolved, nullptr, 0, &executor}));
    EXPECT_EQ(workspace[0], 15127);  // 1; 5; 1; 2; 7
    EXPECT_EQ(workspace[1], 15 * 100 + 27);
    EXPECT_EQ(workspace[2], 5);
  }
  bindings.sizes.T = 2;  // other sizes: resolved again
  std::memset(workspace, 0, sizeof workspace);
  EXPECT_TRUE(run_entry({&desc, &entry, &bindings, resolved, nullptr, 0, &executor}));
  EXPECT_EQ(workspace[0], 25127);
}

TEST(Random, PhiloxKnownAnswers) {  // of the authors' test vectors
  const RandomBits zero = philox(0, 0, 0), ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
}

}  // namespace
}  // namespace tc::test
