#include "tools/measured_model.h"

#include <algorithm>
#include <chrono>

#include "ir/taps.h"
#include "tools/machine_peak.h"
#include "tools/report.h"

namespace tfc::tools {

using ir::Symbol;

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Machine measure_machine(int threads, int real_bytes) {
  Machine machine;
  machine.flops = measure_flops(threads, real_bytes, 0.3);
  machine.flops_one = measure_flops(1, real_bytes, 0.3);
  machine.bandwidth = measure_read_bandwidth(threads, 0.4);
  machine.bandwidth_one = measure_read_bandwidth(1, 0.4);
  return machine;
}

Machine best_of(const Machine& a, const Machine& b) {
  return {std::max(a.flops, b.flops), std::max(a.flops_one, b.flops_one), std::max(a.bandwidth, b.bandwidth),
          std::max(a.bandwidth_one, b.bandwidth_one)};
}

std::vector<double> time_calls(double budget, const std::function<void()>& call) {
  call();
  std::vector<double> times;
  double total = 0;
  while (total < budget || times.size() < 3) {
    times.push_back(seconds_of(call));
    total += times.back();
  }
  return times;
}

// A noisy neighbour spoils some of the calls, not the figure.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

MeasuredModel::MeasuredModel(const ir::Module& planned, const LoadedLibrary& library, const ir::Point& point,
                             int threads)
    : planned_(planned),
      point_(point),
      model_(library, 1, threads),
      inputs_(without_padding(random_inputs(planned, point, 5, false))),
      batch_(planned, model_.info(), inputs_, point) {}

std::vector<std::string> MeasuredModel::kinds() const {
  std::vector<std::string> kinds = {"forward"};
  if (has(TC_ENTRY_TRAIN)) kinds.emplace_back("step");
  if (has(TC_ENTRY_DECODE) && model_.info().kind == TC_KIND_DECODER) kinds.emplace_back("decode");
  return kinds;
}

MeasuredCall MeasuredModel::call(const std::string& kind) {
  std::vector<std::string> known = kinds();
  if (has_masks()) known.emplace_back("padded");
  if (has_masks() && has(TC_ENTRY_TRAIN)) known.emplace_back("padded-step");
  if (std::find(known.begin(), known.end(), kind) == known.end()) {
    throw LibraryError{"there is no figure '" + kind + "' of this model: it has no such function"};
  }
  if (kind == "forward") return forward("forward", batch_);
  if (kind == "step") return step("training step", batch_);
  if (kind == "decode") return decode();
  if (!padded_) padded_.emplace(planned_, model_.info(), half_padded(inputs_), point_);
  return kind == "padded" ? forward("padded forward", *padded_) : step("padded step", *padded_);
}

// Both sides of an encoder-decoder are tokens.
double MeasuredModel::tokens() const {
  return static_cast<double>(batch_.batch.B * (batch_.batch.T + batch_.batch.S));
}

MeasuredCall MeasuredModel::forward(const char* name, const Batch& batch) {
  const ir::Graph& graph = planned_.entry("infer")->graph;
  std::vector<int64_t> starts;  // of each head's output
  int64_t elements = 0;
  for (const ir::Output& output : graph.outputs) {
    if (ir::is_tap(output.name)) continue;
    starts.push_back(elements);
    elements += graph.type(output.value).elements().at(point_);
  }
  output_.resize(static_cast<size_t>(elements * model_.info().real_bytes));
  const auto run = [this, &batch, starts] {
    std::vector<void*> outputs;
    for (const int64_t start : starts) outputs.push_back(output_.data() + start * model_.info().real_bytes);
    tc_batch call = batch.batch;
    call.targets = nullptr;
    model_.check(model_.api().forward(model_.session(), &call, 0, outputs.data()));
  };
  return {{name, 0, tokens(), forward_flops(planned_, point_), 0}, run, {{"infer", TC_ENTRY_INFER}}};
}

void MeasuredModel::train_step(const Batch& batch) {
  tc_adamw settings{};
  settings.size = sizeof settings;
  settings.lr = 1e-4;
  settings.beta1 = 0.9;
  settings.beta2 = 0.95;
  settings.eps = 1e-8;
  settings.clip = 1;
  double mean = 0;
  model_.check(model_.api().train_step(model_.session(), &batch.batch, &settings, &mean));
}

MeasuredCall MeasuredModel::step(const char* name, const Batch& batch) {
  return {{name, 0, tokens(), 3 * forward_flops(planned_, point_), 0},
          [this, &batch] { train_step(batch); },
          {{"train", TC_ENTRY_TRAIN}, {"step", TC_ENTRY_STEP}}};
}

void MeasuredModel::decode_next() {
  const int64_t capacity = point_[Symbol::T];
  if (position_ == 0) {
    model_.check(model_.api().cache_reset(model_.session(), batch_.batch.B, capacity, nullptr));
  }
  model_.check(model_.api().decode(model_.session(), &next_[position_], output_.data()));
  position_ = (position_ + 1) % next_.size();
}

// Token by token: every weight is read once for each.
MeasuredCall MeasuredModel::decode() {
  output_.resize(static_cast<size_t>(model_.info().out_width * model_.info().real_bytes * batch_.batch.B));
  for (int64_t t = 0; t < point_[Symbol::T]; ++t) next_.push_back(batch_.slice(model_.info(), t, 1));
  const double bytes = static_cast<double>(planned_.parameter_count() * model_.info().real_bytes);
  return {{"decode", 0, static_cast<double>(batch_.batch.B), 0, bytes},
          [this] { decode_next(); },
          {{"decode", TC_ENTRY_DECODE}}};
}

std::vector<std::pair<std::string, size_t>> MeasuredModel::bytes() const {
  const auto memory = [&](int what) {
    return model_.api().memory(what, point_[Symbol::B], point_[Symbol::T], point_[Symbol::S], threads());
  };
  const auto workspace = [&](int entry) { return memory(static_cast<int>(TC_MEMORY_WORKSPACE) + entry); };
  std::vector<std::pair<std::string, size_t>> list = {{"parameters", memory(TC_MEMORY_PARAMETERS)},
                                                      {"forward workspace", workspace(TC_ENTRY_INFER)}};
  if (has(TC_ENTRY_TRAIN)) {
    list.emplace_back("gradients", memory(TC_MEMORY_GRADIENTS));
    list.emplace_back("moments", memory(TC_MEMORY_MOMENTS));
    list.emplace_back("training workspace", workspace(TC_ENTRY_TRAIN));
  }
  return list;
}

std::vector<Figure> measure_drift(const ir::Module& planned, const LoadedLibrary& library,
                                  const ir::Point& point, int threads) {
  constexpr int kEarly = 9, kLate = 999, kSteps = 40;
  MeasuredModel young(planned, library, point, threads), old(planned, library, point, threads);
  const MeasuredCall early = young.call("step"), late = old.call("step");
  for (int i = 0; i < kLate; ++i) late.run();
  for (int i = 0; i < kEarly; ++i) early.run();
  std::vector<double> early_times, late_times;
  for (int i = 0; i < kSteps; ++i) {
    early_times.push_back(seconds_of(early.run));
    late_times.push_back(seconds_of(late.run));
  }
  std::vector<Figure> figures = {early.figure, late.figure};
  figures[0].name = "step 10";
  figures[0].seconds = median(early_times);
  figures[1].name = "step 1000";
  figures[1].seconds = median(late_times);
  return figures;
}

}  // namespace tfc::tools
