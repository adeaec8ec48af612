#include "tools/machine_peak.h"

#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace tfc::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Twelve chains (each from its own number, or they would be one) hide the latency of an FMA on every CPU with
// two units of latency four or five.
constexpr int kChains = 12;
constexpr int64_t kRounds = 1 << 14;

// Large, as a model's parameters': with small ones the bandwidth would be too low.
constexpr size_t kPage = size_t{2} << 20;

volatile double sink;  // keeps the loops alive

/// FLOPs of one call.
using Kernel = int64_t (*)();

// clang-format off
#define TFC_FMA_LOOP(name, features, vector, real, set, fma, store, lanes) \
  __attribute__((target(features))) int64_t name() {                      \
    vector sums[kChains];                                                  \
    _Pragma("GCC unroll 12")                                               \
    for (int i = 0; i < kChains; ++i) sums[i] = set(static_cast<real>(i));                  \
    const vector factor = set(static_cast<real>(0.999)), term = set(static_cast<real>(0.001)); \
    for (int64_t round = 0; round < kRounds; ++round) {                    \
      _Pragma("GCC unroll 12")                                             \
      for (int i = 0; i < kChains; ++i) sums[i] = fma(sums[i], factor, term); \
    }                                                                      \
    real out[lanes];                                                       \
    _Pragma("GCC unroll 12")                                               \
    for (int i = 0; i < kChains; ++i) { store(out, sums[i]); sink = out[0]; } \
    return 2 * kRounds * kChains * (lanes);                                \
  }
#define TFC_MADD_PS(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define TFC_MADD_PD(a, b, c) _mm_add_pd(_mm_mul_pd(a, b), c)
TFC_FMA_LOOP(fma_f32_512, "avx512f", __m512, float, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_storeu_ps, 16)
TFC_FMA_LOOP(fma_f64_512, "avx512f", __m512d, double, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_storeu_pd, 8)
TFC_FMA_LOOP(fma_f32_256, "avx2,fma", __m256, float, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_storeu_ps, 8)
TFC_FMA_LOOP(fma_f64_256, "avx2,fma", __m256d, double, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_storeu_pd, 4)
TFC_FMA_LOOP(madd_f32_128, "sse2", __m128, float, _mm_set1_ps, TFC_MADD_PS, _mm_storeu_ps, 4)
TFC_FMA_LOOP(madd_f64_128, "sse2", __m128d, double, _mm_set1_pd, TFC_MADD_PD, _mm_storeu_pd, 2)
#undef TFC_FMA_LOOP
#undef TFC_MADD_PS
#undef TFC_MADD_PD
// clang-format on

Kernel widest_kernel(int real_bytes) {
  const bool f64 = real_bytes == 8;
  if (__builtin_cpu_supports("avx512f")) return f64 ? fma_f64_512 : fma_f32_512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return f64 ? fma_f64_256 : fma_f32_256;
  return f64 ? madd_f64_128 : madd_f32_128;
}

// Runs `work` (which tells its amount) on all threads from one start on until the time is over; amount per
// second.
double rate(int threads, double seconds, const std::function<int64_t(int thread)>& work) {
  std::atomic<int> ready = 0;
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> team;
  for (int index = 0; index < threads; ++index) {
    team.emplace_back([&, index] {
      work(index);  // warm
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const auto start = Clock::now();
      double done = 0, passed = 0;
      while (passed < seconds) {
        done += static_cast<double>(work(index));
        passed = std::chrono::duration<double>(Clock::now() - start).count();
      }
      rates[static_cast<size_t>(index)] = done / passed;
    });
  }
  for (std::thread& member : team) member.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// What each thread reads: together as much as a large model's weights, on a machine that has the memory. A server's
// last-level cache answers a good part of less, though it is smaller: an EPYC (Zen 5) read 256 MiB over and over at 80
// GB/s, and 1 GiB at 52.
size_t bytes_to_read(int threads) {
  constexpr int64_t kTogether = int64_t{1} << 30, kLeast = int64_t{128} << 20;
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const int64_t bytes = std::max(std::min(kTogether, memory / 4) / threads, kLeast);
  return static_cast<size_t>(bytes) / kPage * kPage;
}

}  // namespace

double measure_flops(int threads, int real_bytes, double seconds) {
  const Kernel kernel = widest_kernel(real_bytes);
  return rate(threads, seconds, [kernel](int) { return kernel(); });
}

double measure_read_bandwidth(int threads, double seconds) {
  const size_t bytes = bytes_to_read(threads), count = bytes / sizeof(uint64_t);
  struct Release {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  std::vector<std::unique_ptr<uint64_t[], Release>> memory(static_cast<size_t>(threads));
  return rate(threads, seconds, [&](int thread) {
    auto& words = memory[static_cast<size_t>(thread)];
    if (!words) {
      words.reset(static_cast<uint64_t*>(std::aligned_alloc(kPage, bytes)));
      if (!words) throw std::bad_alloc();
      madvise(words.get(), bytes, MADV_HUGEPAGE);
      std::fill(words.get(), words.get() + count, 1);
    }
    uint64_t sums[8] = {};
    for (size_t i = 0; i < count; i += 8) {
      for (size_t lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
    }
    sink = static_cast<double>(sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7]);
    return static_cast<int64_t>(bytes);
  });
}

}  // namespace tfc::tools
