// Which rows of a value are tokens.
#pragma once

#include "ir/graph.h"

namespace tfc::passes {

/// The mask u8[B,T] or [B,S] of a value of tokens [B,T,W] or [B,S,W]; invalid where its rows are no tokens, or the
/// graph has no mask of them.
ir::Value row_mask(const ir::Graph& graph, const ir::Type& type);

}  // namespace tfc::passes
