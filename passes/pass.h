// What a pass is, and the ordered table of all of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace tfc::passes {

/// Settings that steer passes, from the command line.
struct PassOptions {
  ir::Point point;                       // the design point, for choices that depend on sizes
  int optimisation = 2;                  // 0: mandatory passes only
  std::vector<std::string> disabled;     // --disable=PASS (mandatory ones may not be named; reuse-memory may)
  std::string functions = "all";         // infer | train | all
  std::vector<std::string> print_before, print_after;  // names, or "all"
  std::string print_filter;              // regex over entry names; "" all
  std::string stop_after;                // pass name, or ""
  std::string dump_dir;
  bool time_passes = false;
  bool verify_each = false;
};

/// What a pass may use besides the module.
struct PassContext {
  const PassOptions& options;
  ir::Diagnostics& diagnostics;          // remarks: context.diagnostics.remark("fuse-qkv", place, "why")
};

struct Pass {
  std::string_view name;                 // "fuse-qkv"
  std::string_view summary;              // what it does, one line
  ir::Phase before, after;               // the module's phase when it starts and when it has run
  bool mandatory;                        // runs at -O0 and cannot be disabled
  bool (*run)(ir::Module&, PassContext&);  // true: changed something
};

/// In the order in which they run. Reading this table is reading the compiler.
std::span<const Pass> all_passes();

/// Is there a place in the table at which the pass may be left out? Where it is mandatory it runs all the same.
bool can_be_disabled(std::string_view name);

struct PassRecord {                      // what happened, for --time-passes, --emit=report and tests
  std::string name;
  bool ran = false, changed = false;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;  // over all entries
  int remarks = 0;
};

/// Runs the table from the module's phase to `until` (inclusive), verifying the result of each pass where
/// asked (always in builds with assertions); dumps as the options say. False: diagnostics has the errors.
bool run_pipeline(ir::Module& module, ir::Phase until, const PassOptions& options,
                  ir::Diagnostics& diagnostics, std::vector<PassRecord>* records = nullptr);

}  // namespace tfc::passes
