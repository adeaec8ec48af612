// Descriptions drawn at random from the whole language: legal by construction, small, at sizes that leave
// remainders. The same seed gives the same text.
#pragma once

#include "models/descriptions.h"

namespace tfc::models {

Case random_case(uint64_t seed);

}  // namespace tfc::models
