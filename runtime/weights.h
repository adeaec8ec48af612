// What weight files of this library's models hold besides the parameters, by the names of both who writes and
// who reads.
//
// "__metadata__" has `format`, `name`, `description` (the resolved TOML), `architecture` (lines "key = value"
// of what changes the function that the parameters make, see tc_api.load) and `architecture_hash`. Beside an
// optimizer's state `seed`, `call` and `step_count`; the moments are tensors of their own, absent where
// nothing was trained yet.
#pragma once

#include "runtime/file.h"
#include "runtime/objects.h"
#include "runtime/safetensors.h"

namespace tc {

constexpr const char* kMomentPrefixes[2] = {"optimizer.moment1.", "optimizer.moment2."};
constexpr const char* kStateNames[3] = {"seed", "call", "step_count"};

/// FNV-1a (Fowler, Noll, Vo): it tells texts apart that differ by mistake, not on purpose.
uint64_t architecture_hash(const char* text, size_t length);

/// Names for a message, the first few, and how many more there were.
class NameList {
 public:
  void add(const char* name);
  void add(const JsonString& name) { add(printable(name).text); }
  int count() const { return count_; }
  /// ": a, b and 3 more"
  const char* text();

 private:
  static constexpr int kMost = 8;
  static constexpr size_t kMoreRoom = 24;  // of " and 123 more"
  char text_[700] = {};
  size_t used_ = 0;
  int count_ = 0, shown_ = 0;
};

/// Compares a file's architecture with this model's; TC_E_FORMAT with each key and both values.
tc_status compare_architectures(const char* theirs, const char* ours, Message& message);

/// As tc_api.load and tc_api.save; nobody else is in the model.
tc_status load_weights(tc_model& model, const char* path, bool strict, Message& message);
tc_status save_weights(const tc_model& model, const char* path, bool with_optimizer, Message& message);

}  // namespace tc
