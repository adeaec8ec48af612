#include "passes/plan/cache_layout.h"

#include <map>

#include "ir/check.h"

namespace tfc::passes {

const CacheTensor* CacheLayout::find(std::string_view name) const {
  for (const CacheTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

CacheLayout cache_layout(const ir::Module& module) {
  std::map<std::string, ir::Type> states;  // sorted by name: the order is the module's, not a graph's
  for (const ir::Entry& entry : module.entries) {
    for (ir::NodeId id : entry.graph.nodes()) {
      const ir::Node& node = entry.graph.node(id);
      if (node.op != ir::OpKind::State || node.attributes.text("space") != "cache") continue;
      states.emplace(node.attributes.text("name"), node.results[0]);
    }
  }
  CacheLayout layout;
  for (const auto& [name, type] : states) {
    CacheTensor tensor;
    tensor.name = name;
    const bool ids = type.dtype == ir::DType::I32;  // one for each token
    const std::optional<int64_t> width = ids ? 1 : type.width().constant();
    TFC_CHECK(type.rank() == (ids ? 2 : 3) && width, "cache tensor '" + name + "' has the type " + type.text());
    tensor.width = *width;
    tensor.cross = type.shape[1] == ir::Dim(ir::Symbol::S);
    tensor.bytes = type.bytes();
    tensor.offset = layout.bytes;
    layout.bytes = layout.bytes + ir::align_up(tensor.bytes, 64);
    layout.tensors.push_back(std::move(tensor));
  }
  return layout;
}

}  // namespace tfc::passes
