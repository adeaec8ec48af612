#include "ir/taps.h"

#include <set>

namespace tfc::ir {

std::vector<std::string> tapped_names(const Module& module) {
  std::vector<std::string> names;
  std::set<std::string_view> known;
  for (const Entry& entry : module.entries) {
    for (const Output& output : entry.graph.outputs) {
      if (is_tap(output.name) && known.insert(tapped_name(output.name)).second)
        names.emplace_back(tapped_name(output.name));
    }
  }
  return names;
}

}  // namespace tfc::ir
