// A language model of bytes: any file is a text, and there is nothing to prepare.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/common.h"
#include "tools/random.h"
#include "tools/train.h"

namespace tfc::tools {
namespace {

// Windows of T tokens, and the T tokens that follow each.
struct Windows {
  std::vector<int32_t> tokens, next;
  const void* heads[1] = {};
  tc_batch batch{};

  Windows(const std::vector<int32_t>& text, const std::vector<int64_t>& starts, int64_t T) {
    for (const int64_t start : starts) {
      tokens.insert(tokens.end(), text.begin() + start, text.begin() + start + T);
      next.insert(next.end(), text.begin() + start + 1, text.begin() + start + T + 1);
    }
    heads[0] = next.data();
    batch = empty_batch(static_cast<int64_t>(starts.size()), T);
    batch.tokens = tokens.data();
    batch.targets = heads;
  }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
};

struct Text {
  std::vector<int32_t> train, validation;
};

bool read_text(const std::string& path, const frontend::RunSettings& run, Text& text, int& status) {
  const auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    status = complain("cannot read '" + path + "': " + buffer.getError().message(), kFileTrouble);
    return false;
  }
  const llvm::StringRef bytes = (*buffer)->getBuffer();
  const size_t cut = static_cast<size_t>(static_cast<double>(bytes.size()) * (1 - run.validation));
  for (size_t i = 0; i < bytes.size(); ++i) {
    (i < cut ? text.train : text.validation).push_back(static_cast<uint8_t>(bytes[i]));
  }
  const auto too_short = [&](const std::vector<int32_t>& part) {
    return static_cast<int64_t>(part.size()) < run.seq + 1;
  };
  if (too_short(text.train) || (run.validation > 0 && too_short(text.validation))) {
    status =
        complain("'" + path + "' has " + std::to_string(bytes.size()) + " bytes, too few for windows of " +
                     std::to_string(run.seq) + " to train on and to validate with",
                 kInputIsWrong);
    return false;
  }
  return true;
}

std::vector<int64_t> random_starts(Random& random, size_t text, int64_t B, int64_t T) {
  std::vector<int64_t> starts(static_cast<size_t>(B));
  for (int64_t& start : starts) start = random.below(static_cast<int64_t>(text) - T);
  return starts;
}

// Of the same windows each time, evenly spread over what was held back.
double validation_loss(const Trainer& trainer, const std::vector<int32_t>& text) {
  const int64_t T = trainer.run().seq, room = static_cast<int64_t>(text.size()) - T - 1;
  const int64_t windows = std::min<int64_t>(32, room / T + 1);
  double sum = 0;
  for (int64_t first = 0; first < windows; first += trainer.run().batch) {
    std::vector<int64_t> starts;
    for (int64_t w = first; w < std::min(windows, first + trainer.run().batch); ++w)
      starts.push_back(windows > 1 ? w * room / (windows - 1) : 0);
    const Windows data(text, starts, T);
    sum += trainer.mean_loss(data.batch) * static_cast<double>(starts.size());
  }
  return sum / static_cast<double>(windows);
}

void print_sample(const Trainer& trainer) {
  const frontend::RunSettings& run = trainer.run();
  const LoadedModel& model = trainer.model();
  std::vector<int32_t> prompt;
  for (const char c : run.prompt) prompt.push_back(static_cast<uint8_t>(c));
  tc_batch batch = empty_batch(1, static_cast<int64_t>(prompt.size()));
  batch.tokens = prompt.data();
  tc_sampling sampling{};
  sampling.size = sizeof sampling;
  sampling.max_new = run.sample;
  sampling.temperature = static_cast<float>(run.temperature);
  sampling.top_p = 1;
  sampling.top_k = static_cast<int32_t>(run.top_k);
  sampling.eos = -1;
  sampling.context = TC_CONTEXT_SLIDE;
  sampling.seed = static_cast<uint64_t>(run.seed);
  llvm::outs() << "\nsample:\n" << run.prompt;
  const auto print = [](void*, int64_t, int32_t token) {
    llvm::outs() << static_cast<char>(token);
    return 0;
  };
  model.check(model.api().generate(model.session(), &batch, &sampling, print, nullptr));
  llvm::outs() << "\n";
}

}  // namespace

int train_text(Trainer& trainer, const std::string& folder) {
  const frontend::RunSettings& run = trainer.run();
  Text text;
  int status = kDone;
  if (!read_text((std::filesystem::path(folder) / run.data).string(), run, text, status)) return status;
  int64_t numbers = 0;
  for (const tc_parameter& parameter : trainer.model().parameters()) numbers += parameter.elements;
  auto& out = llvm::outs();
  out << llvm::formatv("{0} bytes to train on, {1} to validate; {2} parameters\n", text.train.size(),
                       text.validation.size(), numbers);
  Random random(static_cast<uint64_t>(run.seed) + 1);
  auto since = std::chrono::steady_clock::now();
  double loss = 0, targets = 0;
  for (int64_t step = 0; step < run.steps; ++step) {
    for (int64_t part = 0; part < run.accumulate; ++part) {
      const Windows data(text.train, random_starts(random, text.train.size(), run.batch, run.seq), run.seq);
      double sum = 0, count = 0;
      trainer.accumulate(data.batch, sum, count);
      loss += sum;
      targets += count;
    }
    trainer.step(step, run.steps);
    if ((step + 1) % run.report != 0 && step + 1 != run.steps) continue;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - since).count();
    out << llvm::formatv("step {0,6}  loss {1:f4}", step + 1, loss / targets);
    if (!text.validation.empty())
      out << llvm::formatv("  validation {0:f4}", validation_loss(trainer, text.validation));
    out << llvm::formatv("  {0,8:f0} tokens/s\n", targets / seconds);
    out.flush();
    loss = targets = 0;
    since = std::chrono::steady_clock::now();
  }
  if (run.sample > 0) print_sample(trainer);
  return kDone;
}

}  // namespace tfc::tools
