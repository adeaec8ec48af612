// What the passes and the run time must know of a model as a whole: Module::facts.
#pragma once

#include <vector>

#include "frontend/description.h"
#include "ir/heads.h"

namespace tfc::frontend {

std::vector<ir::HeadFacts> head_facts(const Description& description);

/// All of them, as ir/blocks.h lists them.
ir::Attributes model_facts(const Description& description);

}  // namespace tfc::frontend
