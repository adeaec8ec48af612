// The nodes of a written-out block.
#pragma once

#include <vector>

#include "frontend/description.h"
#include "frontend/toml_tree.h"

namespace tfc::frontend {

struct BlockContext {
  const Tree& root;  // of the description, for the tables that nodes fall back on
  const Description& description;
  std::string name;                       // of the block
  bool may_read_memory = false;           // it is a block of a decoder that has an encoder or memory
  std::vector<const Tree*> layer_tables;  // [layers.X] that narrow the nodes
};

/// The nodes in an order in which each comes after its inputs, the block's output last; empty when they do
/// not make a block, which is reported.
std::vector<BlockNode> resolve_nodes(const Tree& nodes, const BlockContext& context,
                                     ir::Diagnostics& diagnostics);

}  // namespace tfc::frontend
