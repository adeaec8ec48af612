// Pieces of `transformerc train`: the optimizer's settings step by step, and the tasks.
#pragma once

#include "frontend/description.h"
#include "tools/loaded_library.h"

namespace tfc::tools {

/// One training run: a model of a compiled library, and [run]'s settings.
class Trainer {
 public:
  Trainer(const LoadedLibrary& library, const frontend::Description& description, int threads);

  const frontend::RunSettings& run() const { return run_; }
  const LoadedModel& model() const { return model_; }

  /// Adds the gradients of one batch of this step; gives the summed loss and how many targets counted.
  void accumulate(const tc_batch& batch, double& sum, double& count);
  /// Ends step `step` (from 0) of `steps`.
  void step(int64_t step, int64_t steps);
  double mean_loss(const tc_batch& batch) const;
  /// Of step `step`: warm-up, then the schedule.
  double learning_rate(int64_t step, int64_t steps) const;

 private:
  const frontend::RunSettings run_;
  LoadedModel model_;
};

/// A zeroed batch of B rows of T (and S) tokens.
tc_batch empty_batch(int64_t B, int64_t T, int64_t S = 0);

/// Encoder-decoder: random sequences in, the same sequences backwards out. Shows per epoch the loss, the
/// share of tokens that are right under teacher forcing, and the share of unseen sequences that greedy
/// decoding reverses whole.
int train_reverse(Trainer& trainer);

/// Decoder: the bytes of a file, in random windows. `folder`: where a relative `data` begins.
int train_text(Trainer& trainer, const std::string& folder);

}  // namespace tfc::tools
