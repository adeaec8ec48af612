// A compiled model under measurement: the calls that `bench` times, and what each counts for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/call_inputs.h"
#include "tools/loaded_library.h"

namespace tfc::tools {

/// What the machine can do, on as many threads as the model has and on one.
struct Machine {
  double flops = 0, flops_one = 0, bandwidth = 0, bandwidth_one = 0;
};
Machine measure_machine(int threads, int real_bytes);
/// The better of two measurements: a share of a peak that a neighbour had spoilt would flatter.
Machine best_of(const Machine& a, const Machine& b);

/// One call of the kind that `name` says: its seconds and what it does. `bytes`: what it must read at least,
/// where that rules.
struct Figure {
  std::string name;
  double seconds = 0, tokens = 0, flops = 0, bytes = 0;
};

/// A call ready to be repeated; `entries`: the plans that it runs, by name and number.
struct MeasuredCall {
  Figure figure;  // without its time
  std::function<void()> run;
  std::vector<std::pair<std::string, int>> entries;
};

double seconds_of(const std::function<void()>& call);
/// Seconds of single calls after one that does not count, until `budget` is spent; at least three.
std::vector<double> time_calls(double budget, const std::function<void()>& call);
double median(std::vector<double> values);

class MeasuredModel {
 public:
  /// `library` and `planned` must outlive it.
  MeasuredModel(const ir::Module& planned, const LoadedLibrary& library, const ir::Point& point, int threads);

  int threads() const { return model_.api().threads(model_.session()); }
  const LoadedModel& model() const { return model_; }
  /// "forward", "step", "decode": those that the model has. "padded" and "padded-step" may be asked for too where it
  /// has a mask: forward and step where half of all positions are padding.
  std::vector<std::string> kinds() const;
  /// Throws LibraryError where the model has no such call.
  MeasuredCall call(const std::string& kind);
  /// Bytes by kind, at the design point.
  std::vector<std::pair<std::string, size_t>> bytes() const;

 private:
  bool has(int entry) const { return model_.info().entries & (1u << entry); }
  double tokens() const;
  MeasuredCall forward(const char* name, const Batch& batch);
  bool has_masks() const { return inputs_.count("mask") > 0; }
  MeasuredCall step(const char* name, const Batch& batch);
  void train_step(const Batch& batch);
  MeasuredCall decode();
  void decode_next();

  const ir::Module& planned_;
  const ir::Point point_;
  LoadedModel model_;
  Inputs inputs_;
  Batch batch_;
  std::optional<Batch> padded_;  // half of its positions are padding
  std::vector<uint8_t> output_;  // of forward, decode
  std::vector<tc_batch> next_;   // decode: each position's token
  size_t position_ = 0;
};

/// A model's 10th training step and its 1000th: medians of steps from there on, taken in turns.
std::vector<Figure> measure_drift(const ir::Module& planned, const LoadedLibrary& library,
                                  const ir::Point& point, int threads);

}  // namespace tfc::tools
