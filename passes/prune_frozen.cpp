#include "passes/prune_frozen.h"

#include "ir/check.h"
#include "passes/fuse_nodes.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;

constexpr std::string_view kGradients = "grads:";

/// Parameters that are one matrix are frozen together or not at all: expand sees to it.
bool is_frozen_gradient(const ir::Module& module, const ir::Output& output) {
  if (!output.name.starts_with(kGradients)) return false;
  const std::string name = output.name.substr(kGradients.size());
  if (name == "*") return false;  // the optimizer's, of what is trained
  const std::string first = ir::split_joined_name(name).front();
  const ir::Parameter* parameter = module.parameter(first);
  TFC_CHECK(parameter, "no parameter is named '" + first + "'");
  return parameter->frozen;
}

bool is_needed(const Graph& graph, ir::Value value) {
  return !graph.uses(value).empty() || is_output(graph, value);
}

/// linear_loss_grad of which sum and count alone are read -> linear_loss
void use_plain_loss(Graph& graph, NodeId id) {
  for (uint32_t gradient : {2u, 3u, 4u}) {
    if (is_needed(graph, {id, gradient})) return;
  }
  const ir::Node node = graph.node(id);
  std::vector<ir::Value> operands = graph.operands(id);
  operands.resize(6);  // without `mean`, which says what to differentiate
  const NodeId loss = graph.add(OpKind::LinearLoss, operands, node.attributes, node.name, node.place);
  for (uint32_t result : {0u, 1u}) graph.replace_uses({id, result}, {loss, result});
}

}  // namespace

bool prune_frozen(ir::Module& module, PassContext& context) {
  bool changed = false;
  for (ir::Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    const size_t pruned = std::erase_if(
        graph.outputs, [&](const ir::Output& output) { return is_frozen_gradient(module, output); });
    if (pruned == 0) continue;
    changed = true;
    size_t dropped = graph.erase_unreachable();
    for (NodeId id : graph.nodes()) {
      if (graph.node(id).op == OpKind::LinearLossGrad) use_plain_loss(graph, id);
    }
    dropped += graph.erase_unreachable();
    context.diagnostics.remark("prune-frozen", {},
                               "entry '" + entry.name + "': " + std::to_string(pruned) +
                                   " gradients of frozen parameters, " + std::to_string(dropped) +
                                   " nodes need not run");
  }
  return changed;
}

}  // namespace tfc::passes
