#include "passes/row_mask.h"

namespace tfc::passes {

ir::Value row_mask(const ir::Graph& graph, const ir::Type& type) {
  if (type.rank() != 3) return {};
  const ir::NodeId mask = graph.find(type.shape[1] == ir::Dim(ir::Symbol::S) ? "src_mask" : "mask");
  if (!mask.valid() || graph.node(mask).op != ir::OpKind::Input) return {};
  const ir::Type& rows = graph.type({mask, 0});
  return rows.shape[0] == type.shape[0] && rows.shape[1] == type.shape[1] ? ir::Value{mask, 0} : ir::Value{};
}

}  // namespace tfc::passes
