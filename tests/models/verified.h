// `transformerc verify` on a case, as expectations of a test.
#pragma once

#include "models/compiled.h"
#include "models/descriptions.h"

namespace tfc::models {

/// Compiles and compares at the case's sizes; skips where this machine cannot run the level.
void verify(const Case& model, const Settings& settings);

}  // namespace tfc::models
