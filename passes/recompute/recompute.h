// The two halves of choose-recompute: one graph, and how many layers fit a budget.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"

namespace tfc::passes {

/// "layers.3", "encoder.layers.0" of a node's path; "" outside layers.
std::string layer_of(const std::string& path);

/// Layers of which the backward reads something, in order of execution.
std::vector<std::string> layers_with_backward(const ir::Graph& graph);

struct Recomputed {
  std::vector<ir::NodeId> copies;  // late nodes
  int64_t bytes_less = 0;          // kept from forward to backward, at the point
};

/// Lets the backward of the graph compute again what `none` says, and everything within these layers.
Recomputed recompute_in(ir::Graph& graph, const std::vector<std::string>& layers, const ir::Point& point);

/// The fewest layers, from the first on, with which training fits the module's budget. When all of them are
/// not enough: an error that lists what training needs, and all of them.
std::vector<std::string> layers_for_budget(const ir::Module& module, const ir::Entry& entry,
                                           PassContext& context);

}  // namespace tfc::passes
