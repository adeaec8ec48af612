#include "passes/choose_recompute.h"

#include <algorithm>
#include <map>
#include <optional>

#include "passes/recompute/recompute.h"

namespace tfc::passes {
namespace {

bool has_late_nodes(const ir::Graph& graph) {
  const std::vector<ir::NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](ir::NodeId id) { return graph.node(id).late; });
}

/// A budget is train's (vjp's, where there is no loss), and what it makes necessary there is done in both.
class LayerChoice {
 public:
  std::vector<std::string> in(const ir::Module& module, const ir::Entry& entry, PassContext& context) {
    if (module.recompute.mode == "all") return layers_with_backward(entry.graph);
    if (module.recompute.mode != "auto") return {};
    if (!for_budget_) for_budget_ = layers_for_budget(module, entry, context);
    return *for_budget_;
  }

 private:
  std::optional<std::vector<std::string>> for_budget_;
};

/// "layer_norm 24, activation 12"
std::string counts_text(const ir::Graph& graph, const std::vector<ir::NodeId>& copies) {
  std::map<std::string, int> counts;
  for (ir::NodeId id : copies) ++counts[std::string(ir::info(graph.node(id).op).text)];
  std::string text;
  for (const auto& [op, count] : counts)
    text += (text.empty() ? "" : ", ") + op + " " + std::to_string(count);
  return text;
}

}  // namespace

bool choose_recompute(ir::Module& module, PassContext& context) {
  bool changed = false;
  LayerChoice choice;
  for (ir::Entry& entry : module.entries) {
    if ((entry.name != "train" && entry.name != "vjp") || has_late_nodes(entry.graph)) continue;
    const std::vector<std::string> layers = choice.in(module, entry, context);
    const Recomputed made = recompute_in(entry.graph, layers, context.options.point);
    if (made.copies.empty()) continue;
    changed = true;
    context.diagnostics.remark(
        "choose-recompute", module.recompute.place,
        "entry '" + entry.name + "': the backward computes " + std::to_string(made.copies.size()) +
            " nodes again (" + counts_text(entry.graph, made.copies) + "), of " +
            std::to_string(layers.size()) + " layers all, and " + std::to_string(made.bytes_less) +
            " bytes less are kept at the design point");
  }
  return changed;
}

}  // namespace tfc::passes
