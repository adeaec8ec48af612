#include "passes/fuse_gate_up.h"

#include "passes/join_linears.h"

namespace tfc::passes {

bool fuse_gate_up(ir::Module& module, PassContext& context) {
  constexpr std::string_view parts[] = {"gate", "up"};
  return join_linears(module, parts, "fuse-gate-up", context);
}

}  // namespace tfc::passes
