#include "models/hooks.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "models/session.h"

namespace tfc::models {

void backwards(void*, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg) {
  for (int64_t task = tasks - 1; task >= 0; --task) body(arg, task);
}

void shuffled(void* user, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg) {
  std::vector<int64_t> order(static_cast<size_t>(tasks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), *static_cast<std::mt19937_64*>(user));
  for (const int64_t task : order) body(arg, task);
}

void on_three_threads(void*, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t task; (task = next++) < tasks;) body(arg, task);
  };
  std::thread second(work), third(work);
  work();
  second.join();
  third.join();
}

tc_options with_hook(ParallelFor hook, int threads, void* user) {
  tc_options options = with_threads(threads);
  options.parallel_for = hook;
  options.user = user;
  return options;
}

}  // namespace tfc::models
