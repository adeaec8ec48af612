// Memory through which callers change values inside the model, as [debug] edits asks: the space "edits" of a
// session. Each edited value NAME has two tensors there, "NAME" what is put in, and "how:NAME", for each
// element what is done with it (the operation `edit` in ir/ops.def). The interpreter holds them whole. In a
// library both are one entry of a table, NAME's number the place in it, which says where the caller's arrays
// are and how they repeat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace tfc::ir {

inline constexpr std::string_view kEditsSpace = "edits", kHow = "how:";
inline constexpr int64_t kEditBytes = 64;  // of a table's entry: tc::EditEntry
inline constexpr int64_t kMostEditedRank = 4;

/// What a tensor of the space belongs to: NAME.
inline std::string_view edited_name(std::string_view state) {
  return state.starts_with(kHow) ? state.substr(kHow.size()) : state;
}

struct EditedValue {
  std::string name;
  Type type;
};

/// What one entry's graph edits, in the order of names.
std::vector<EditedValue> edited_values(const Graph& graph);

/// Names of all that some entry edits, each once, in the order of names: a library numbers its edits so.
std::vector<std::string> edited_names(const Module& module);

}  // namespace tfc::ir
