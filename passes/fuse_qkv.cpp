#include "passes/fuse_qkv.h"

#include "passes/join_linears.h"

namespace tfc::passes {

bool fuse_qkv(ir::Module& module, PassContext& context) {
  constexpr std::string_view parts[] = {"q", "k", "v"};
  return join_linears(module, parts, "fuse-qkv", context);
}

}  // namespace tfc::passes
