// The heads of a random description: one, or several with names.
#pragma once

#include "models/random_source.h"

namespace tfc::models {

/// What heads must know of the model.
struct HeadedModel {
  bool pair = false;    // encoder-decoder
  bool words = false;   // a vocabulary
  bool source_words = false;
  int64_t layers = 0, source_layers = 0;  // that a head may read; those of the encoder
};

struct RandomHeads {
  std::string text;       // tables
  bool has_loss = false;  // one of them
};

RandomHeads random_heads(RandomSource& draw, const HeadedModel& model);

}  // namespace tfc::models
