// What this machine can do, measured now: the figures that a benchmark's are shares of.
#pragma once

namespace tfc::tools {

/// Multiply-adds of independent vectors in registers, in the widest instructions the CPU has, on `threads`
/// threads at once: FLOP/s. `real_bytes`: 4 or 8.
double measure_flops(int threads, int real_bytes, double seconds);

/// Reading memory far beyond the caches: bytes/s.
double measure_read_bandwidth(int threads, double seconds);

}  // namespace tfc::tools
