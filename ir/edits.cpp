#include "ir/edits.h"

#include <map>
#include <set>

namespace tfc::ir {

std::vector<EditedValue> edited_values(const Graph& graph) {
  std::map<std::string, Type, std::less<>> found;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op != OpKind::State || node.attributes.text("space") != kEditsSpace) continue;
    Type type = node.results[0];
    type.dtype = graph.real;
    found.try_emplace(std::string(edited_name(node.attributes.text("name"))), std::move(type));
  }
  std::vector<EditedValue> values;
  for (const auto& [name, type] : found) values.push_back({name, type});
  return values;
}

std::vector<std::string> edited_names(const Module& module) {
  std::set<std::string> names;
  for (const Entry& entry : module.entries) {
    for (const EditedValue& value : edited_values(entry.graph)) names.insert(value.name);
  }
  return {names.begin(), names.end()};
}

}  // namespace tfc::ir
