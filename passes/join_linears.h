// What fuse-qkv and fuse-gate-up share: products of one input with neighbouring weights are one product.
#pragma once

#include <span>
#include <string_view>

#include "passes/pass.h"

namespace tfc::passes {

/// Joins linears that read the same value and whose parameters are neighbours without a gap, where the last
/// parts of their prefixes ("layers.0.attn.q" -> "q") are consecutive names of `parts`: one linear and a
/// split of its result.
bool join_linears(ir::Module& module, std::span<const std::string_view> parts, std::string_view pass,
                  PassContext& context);

}  // namespace tfc::passes
