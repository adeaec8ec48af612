// transformerc train: compiles the description, then trains it with the library that came out.
#include "tools/train.h"

#include <cmath>
#include <filesystem>
#include <numbers>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "tools/common.h"
#include "tools/verbs.h"

namespace tfc::tools {

Trainer::Trainer(const LoadedLibrary& library, const frontend::Description& description, int threads)
    : run_(description.run), model_(library, static_cast<uint64_t>(description.run.seed), threads) {}

void Trainer::accumulate(const tc_batch& batch, double& sum, double& count) {
  model_.check(model_.api().accumulate(model_.session(), &batch, &sum, &count));
}

double Trainer::learning_rate(int64_t step, int64_t steps) const {
  if (step < run_.warmup) return run_.lr * static_cast<double>(step + 1) / static_cast<double>(run_.warmup);
  if (run_.schedule == "constant") return run_.lr;
  const int64_t left = std::max<int64_t>(1, steps - run_.warmup);
  const double done = static_cast<double>(step - run_.warmup) / static_cast<double>(left);
  const double share = run_.schedule == "linear" ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  return run_.min_lr + (run_.lr - run_.min_lr) * share;
}

void Trainer::step(int64_t step, int64_t steps) {
  tc_adamw settings{};
  settings.size = sizeof settings;
  settings.lr = learning_rate(step, steps);
  settings.beta1 = run_.beta1;
  settings.beta2 = run_.beta2;
  settings.eps = run_.eps;
  settings.weight_decay = run_.weight_decay;
  settings.clip = run_.clip;
  model_.check(model_.api().step(model_.session(), &settings, nullptr));
}

double Trainer::mean_loss(const tc_batch& batch) const {
  double mean = 0;
  model_.check(model_.api().loss(model_.session(), &batch, &mean));
  return mean;
}

tc_batch empty_batch(int64_t B, int64_t T, int64_t S) {
  tc_batch batch{};
  batch.size = sizeof batch;
  batch.B = B;
  batch.T = T;
  batch.S = S;
  return batch;
}

namespace {

// What a task needs of a model; "" where it has it.
std::string misfit(const frontend::Description& description) {
  const frontend::RunSettings& run = description.run;
  const frontend::ModelSettings& model = description.model;
  if (!run.written)
    return "there is no [run]: it says what to train on, such as task = \"text\" and data = \"book.txt\"";
  if (run.task == "reverse") {
    if (!model.is_encoder_decoder() || model.vocab < 4 || !model.has_encoder_input ||
        !description.has_only_head("lm")) {
      return "task = \"reverse\" needs an encoder-decoder with a vocabulary of at least 4: padding, begin, "
             "and symbols";
    }
    if (model.src_vocab != model.vocab) return "task = \"reverse\" needs one vocabulary for both sides";
    return "";
  }
  if (run.task != "text") return "[run] needs a task: \"text\" or \"reverse\"";
  if (model.kind != "decoder" || model.vocab < 256 || !description.has_only_head("lm")) {
    return "task = \"text\" needs a decoder with vocab = 256 (a token is a byte) and head \"lm\"";
  }
  return "";
}

}  // namespace

int train(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  const auto target = target_of(options, diagnostics);
  const auto file = target ? read_input(options, diagnostics) : nullptr;
  if (!file) return finish(options, diagnostics);
  const auto description = frontend::load_description(file, options.overrides, diagnostics);
  if (!description) return finish(options, diagnostics);
  if (const std::string why = misfit(*description); !why.empty()) {
    diagnostics.error(description->places.model, why);
    return finish(options, diagnostics);
  }
  const ir::Module module = frontend::build_blocks(*description, options.precision);
  const auto library = compile_and_load(module, pass_options_of(options, module), *target, diagnostics);
  if (!library) return finish(options, diagnostics);
  finish(options, diagnostics);
  try {
    const int threads = options.threads ? options.threads : static_cast<int>(description->run.threads);
    Trainer trainer(*library, *description, threads);
    const std::string folder = std::filesystem::path(options.input).parent_path().string();
    return description->run.task == "reverse" ? train_reverse(trainer) : train_text(trainer, folder);
  } catch (const LibraryError& error) {
    return complain(error.message, kInputIsWrong);
  }
}

}  // namespace tfc::tools
