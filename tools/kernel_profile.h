// Where the time of a call goes: the records of its plans, each beside what the machine could do.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/JSON.h"
#include "tools/measured_model.h"

namespace tfc::tools {

/// A record of a plan in one call of the figure.
struct RecordCost {
  std::string entry, node, kernel;  // kernel: with its settings
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
};

struct KernelProfile {
  std::string figure;
  double seconds = 0, between = 0;  // of the whole call; of what is not in its records
  std::vector<RecordCost> records;
};

/// Repeats the call for `budget` seconds. Each time is a median of its own, so that a call in which a
/// neighbour took the core for a while spoils no record; they need not add up.
KernelProfile profile_kernels(const ir::Module& planned, const ir::Point& point, const LoadedModel& model,
                              const MeasuredCall& call, double budget);

/// Records of the same kernel at the same place of every layer are one line; the longest first.
std::string profile_text(const KernelProfile& profile, const Machine& machine);

void write_profile(llvm::json::OStream& json, const KernelProfile& profile, const Machine& machine);

}  // namespace tfc::tools
