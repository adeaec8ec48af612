#include "ir/plan.h"

#include <set>

namespace tfc::ir {

std::string_view space_name(Space space) {
  constexpr std::string_view kNames[] = {"ws",      "params", "grads", "moment1", "moment2",
                                         "cache",   "edits",  "const", "ext"};
  return kNames[static_cast<int>(space)];
}

std::string KernelSpec::text() const { return family + attributes.print(); }

Dim Plan::slot_offset(int slot) const {
  Dim sum;
  for (int i = 0; i < slot; ++i) sum = sum + slots[static_cast<size_t>(i)];
  return sum;
}

Dim Plan::workspace_bytes() const { return slot_offset(static_cast<int>(slots.size())); }

Dim Plan::scratch_bytes() const {
  std::set<Dim> distinct;  // a few sizes, repeated in every layer
  for (const Record& record : records) distinct.insert(record.scratch);
  Dim greatest;
  for (const Dim& bytes : distinct) greatest = greatest.is_zero() ? bytes : max(greatest, bytes);
  return greatest;
}

}  // namespace tfc::ir
