// Description -> module of phase `blocks`: the graph of what the user wrote, as ir/blocks.h specifies.
#pragma once

#include "frontend/description.h"
#include "ir/module.h"

namespace tfc::frontend {

/// One entry, "model". Module::description is the resolved TOML. `real`: F32 or F64.
ir::Module build_blocks(const Description& description, ir::DType real);

}  // namespace tfc::frontend
