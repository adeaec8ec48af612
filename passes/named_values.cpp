#include "passes/named_values.h"

#include <llvm/Support/GlobPattern.h>

#include <set>

#include "ir/algorithms.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;

/// "layers.0.attn.q+k+v.split" -> layers.0.attn.q, .k, .v
void add_parts(const std::string& split, std::vector<NamedValue>& list, NodeId id) {
  const std::string joined = split.substr(0, split.rfind('.'));
  const std::string prefix = joined.substr(0, joined.rfind('.') + 1);
  uint32_t result = 0;
  for (const std::string& part : ir::split_joined_name(joined.substr(prefix.size())))
    list.push_back({prefix + part, {id, result++}});
}

void refuse(const ir::Freeze& glob, const std::string& wrong, const NamedValue* refused,
            const std::vector<NamedValue>& values, const std::string& key, ir::Diagnostics& diagnostics) {
  if (!wrong.empty()) {
    diagnostics.error(glob.place, key + ": '" + glob.pattern + "' is no glob: " + wrong);
    return;
  }
  if (refused) {
    diagnostics.error(glob.place, key + ": '" + refused->name + "' " + refused->refusal);
    return;
  }
  ir::Diagnostic& error = diagnostics.error(glob.place, key + ": no value is named by '" + glob.pattern + "'");
  std::vector<std::string> names;
  for (const NamedValue& named : values) {
    if (named.refusal.empty()) names.push_back(named.name);
  }
  const std::string near = ir::nearest_name(glob.pattern, names);
  if (!near.empty()) error.notes.push_back("did you mean '" + near + "'?");
  error.notes.push_back("--emit=ir:ops lists the values" +
                        std::string(key == "taps" ? "; the weights of an attention NAME are 'NAME.weights'" : ""));
}

}  // namespace

std::vector<NamedValue> named_values(const Graph& graph) {
  std::vector<NamedValue> list;
  for (NodeId id : ir::topological_order(graph)) {
    const Node& node = graph.node(id);
    if (ir::info(node.op).op_class == ir::OpClass::Leaf || node.results[0].dtype != graph.real) continue;
    if (node.results[0].rank() == 0) continue;  // losses, which are doubles in both precisions
    if (node.op == OpKind::Split) {
      add_parts(node.name, list, id);
    } else {
      list.push_back({node.name, {id, 0}});
    }
  }
  return list;
}

std::vector<NamedValue> tappable_values(const Graph& graph) {
  std::vector<NamedValue> values;
  for (const NamedValue& named : named_values(graph)) {
    values.push_back(named);
    if (graph.node(named.value.node).op == OpKind::Attention)
      values.push_back({named.name + ".weights", {named.value.node, 1}});
  }
  return values;
}

std::vector<NamedValue> values_named_by(const std::vector<ir::Freeze>& globs, const std::vector<NamedValue>& values,
                                        const std::string& key, ir::Diagnostics& diagnostics) {
  std::vector<NamedValue> chosen;
  std::set<std::string> known;
  for (const ir::Freeze& one : globs) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(one.pattern);
    const std::string wrong = glob ? "" : llvm::toString(glob.takeError());
    bool matches = false;
    const NamedValue* refused = nullptr;
    for (const NamedValue& named : values) {
      if (!wrong.empty() || !glob->match(named.name)) continue;
      if (!named.refusal.empty()) {
        refused = &named;
        continue;
      }
      matches = true;
      if (known.insert(named.name).second) chosen.push_back(named);
    }
    if (!matches) refuse(one, wrong, refused, values, key, diagnostics);
  }
  return chosen;
}

}  // namespace tfc::passes
