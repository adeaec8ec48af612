// Ways to run a parallel_for's tasks that no pool of threads would choose.
#pragma once

#include <cstdint>

#include "runtime/api.h"

namespace tfc::models {

using ParallelFor = void (*)(void* user, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg);

void backwards(void* user, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg);
/// In a random order, another one each time. `user`: a std::mt19937_64.
void shuffled(void* user, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg);
/// On three threads, which take what comes. Calls must allow three tasks at once.
void on_three_threads(void* user, int64_t tasks, void (*body)(void* arg, int64_t task), void* arg);

tc_options with_hook(ParallelFor hook, int threads, void* user = nullptr);

}  // namespace tfc::models
