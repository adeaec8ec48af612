// The smallest task that needs an encoder, a decoder and the attention between them.
#include <algorithm>
#include <set>

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/options.h"
#include "tools/random.h"
#include "tools/train.h"

namespace tfc::tools {
namespace {

constexpr int64_t kUnseen = 200;  // sequences held back

// Of V tokens 0 to V-3 are symbols and V-2 begins a target.
int64_t symbols_of(const Trainer& trainer) { return trainer.model().info().vocab - 2; }

using Sequence = std::vector<int32_t>;

// Distinct ones, so that what is held back is never trained on; fewer where the alphabet has no more.
std::vector<Sequence> distinct_sequences(int64_t count, int64_t length, int64_t symbols, uint64_t seed) {
  Random random(seed);
  std::set<Sequence> seen;
  std::vector<Sequence> list;
  for (int64_t tries = 0; tries < 20 * count && static_cast<int64_t>(list.size()) < count; ++tries) {
    Sequence sequence(static_cast<size_t>(length));
    for (int32_t& symbol : sequence) symbol = static_cast<int32_t>(random.below(symbols));
    if (seen.insert(sequence).second) list.push_back(sequence);
  }
  return list;
}

// Rows of source, shifted target and targets, contiguous.
struct ReverseBatch {
  Sequence src, tgt, targets;
  const void* heads[1] = {};
  tc_batch batch{};

  ReverseBatch(const std::vector<Sequence>& sequences, size_t first, size_t last, int64_t begin) {
    const int64_t length = static_cast<int64_t>(sequences[first].size());
    for (size_t row = first; row < last; ++row) {
      const Sequence& s = sequences[row];
      src.insert(src.end(), s.begin(), s.end());
      targets.insert(targets.end(), s.rbegin(), s.rend());
      tgt.push_back(static_cast<int32_t>(begin));
      tgt.insert(tgt.end(), s.rbegin(), s.rend() - 1);
    }
    heads[0] = targets.data();
    batch = empty_batch(static_cast<int64_t>(last - first), length, length);
    batch.src = src.data();
    batch.tgt = tgt.data();
    batch.targets = heads;
  }
  ReverseBatch(const ReverseBatch&) = delete;
  ReverseBatch& operator=(const ReverseBatch&) = delete;
};

double token_accuracy(const Trainer& trainer, const ReverseBatch& data) {
  const LoadedModel& model = trainer.model();
  const int64_t vocab = model.info().vocab, tokens = static_cast<int64_t>(data.targets.size());
  std::vector<uint8_t> logits(static_cast<size_t>(tokens * vocab * model.info().real_bytes));
  tc_batch batch = data.batch;
  batch.targets = nullptr;
  void* outputs[] = {logits.data()};
  model.check(model.api().forward(model.session(), &batch, 0, outputs));
  const std::vector<double> values = model.read(logits.data(), tokens * vocab);
  int64_t right = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto row = values.begin() + t * vocab;
    right += std::max_element(row, row + vocab) - row == data.targets[static_cast<size_t>(t)];
  }
  return static_cast<double>(right) / static_cast<double>(tokens);
}

std::vector<Sequence> decode_greedily(const Trainer& trainer, const ReverseBatch& data) {
  const LoadedModel& model = trainer.model();
  tc_batch prompt = empty_batch(data.batch.B, 0, data.batch.S);
  prompt.src = data.batch.src;
  tc_sampling sampling{};
  sampling.size = sizeof sampling;
  sampling.max_new = data.batch.T;
  sampling.eos = -1;
  sampling.bos = static_cast<int32_t>(symbols_of(trainer));
  std::vector<Sequence> rows(static_cast<size_t>(data.batch.B));
  const auto collect = [](void* user, int64_t row, int32_t token) {
    (*static_cast<std::vector<Sequence>*>(user))[static_cast<size_t>(row)].push_back(token);
    return 0;
  };
  model.check(model.api().generate(model.session(), &prompt, &sampling, collect, &rows));
  return rows;
}

std::string text_of(const Sequence& sequence) {
  std::string text;
  for (const int32_t symbol : sequence) text += (text.empty() ? "" : " ") + std::to_string(symbol);
  return text;
}

}  // namespace

int train_reverse(Trainer& trainer) {
  const frontend::RunSettings& run = trainer.run();
  std::vector<Sequence> sequences = distinct_sequences(
      run.examples + kUnseen, run.length, symbols_of(trainer), static_cast<uint64_t>(run.seed) + 1);
  const size_t held_back = std::max<size_t>(1, std::min<size_t>(kUnseen, sequences.size() / 10));
  const std::vector<Sequence> unseen(sequences.end() - static_cast<int64_t>(held_back), sequences.end());
  sequences.resize(sequences.size() - held_back);
  const ReverseBatch check(unseen, 0, unseen.size(), symbols_of(trainer));

  auto& out = llvm::outs();
  out << llvm::formatv("{0} sequences of {1} to train on, {2} unseen\n", sequences.size(), run.length,
                       unseen.size());
  const size_t batch_size = static_cast<size_t>(run.batch);
  const int64_t steps_per_epoch = static_cast<int64_t>((sequences.size() + batch_size - 1) / batch_size);
  const int64_t steps = run.epochs * steps_per_epoch;
  Random order(static_cast<uint64_t>(run.seed) + 2);
  std::vector<Sequence> decoded;
  int64_t step = 0;
  for (int64_t epoch = 1; epoch <= run.epochs; ++epoch) {
    for (size_t i = sequences.size(); i > 1; --i)
      std::swap(sequences[i - 1], sequences[static_cast<size_t>(order.below(static_cast<int64_t>(i)))]);
    double loss = 0, targets = 0;
    for (size_t first = 0; first < sequences.size(); first += batch_size) {
      const ReverseBatch data(sequences, first, std::min(first + batch_size, sequences.size()),
                              symbols_of(trainer));
      double sum = 0, count = 0;
      trainer.accumulate(data.batch, sum, count);
      trainer.step(step++, steps);
      loss += sum;
      targets += count;
    }
    decoded = decode_greedily(trainer, check);
    size_t reversed = 0;
    for (size_t row = 0; row < unseen.size(); ++row)
      reversed +=
          std::equal(unseen[row].rbegin(), unseen[row].rend(), decoded[row].begin(), decoded[row].end());
    out << llvm::formatv("epoch {0,3}  loss {1:f4}  unseen: token accuracy {2,5:f1} %, reversed {3,5:f1} %\n",
                         epoch, loss / targets, 100 * token_accuracy(trainer, check),
                         100.0 * static_cast<double>(reversed) / static_cast<double>(unseen.size()));
    out.flush();
  }
  for (size_t row = 0; row < std::min<size_t>(4, unseen.size()); ++row) {
    out << text_of(unseen[row]) << "  ->  " << text_of(decoded[row]) << "\n";
  }
  return kDone;
}

}  // namespace tfc::tools
