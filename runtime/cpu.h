// What this processor, and the operating system for it, can run.
#pragma once

namespace tc {

/// The x86-64 level: 1 (any), 2, 3 (AVX2, FMA), 4 (AVX-512); registers count only where the system saves
/// them.
int cpu_level();

}  // namespace tc
