// What `transformerc verify` compares; tools/verify.cpp prints it.
#pragma once

#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "tools/call_inputs.h"
#include "tools/loaded_library.h"
#include "tools/random_edits.h"

namespace tfc::tools {

struct Check {
  std::string group, name;
  double error = 0, tolerance = 0;
  bool ok() const { return error <= tolerance; }  // false for NaN
};

// Errors are relative to the greatest magnitude of the tensor itself, with two floors for gradients. A gradient is a sum
// whose terms may cancel; what is left then is rounding, as large as the terms allow, and has no digit to compare.
//
// Of the greatest gradient of all, which tells how large terms are: a tensor that is smaller is compared to this share.
inline constexpr double kLeastShare = 1e-3;
// And where all cancel, as where softmax sees a single key, or equal keys: outputs and upstream gradients are near 1, so
// terms are too, and float32 leaves about 1e-7 of them. Holds for the gradients' norm as well.
inline constexpr double kLeastGradient = 1e-6;

/// NaN where there is one.
double greatest_magnitude(const std::vector<double>& values);

/// One library and one interpreter on the same parameters and inputs.
class Verification {
 public:
  /// `joint`: the module in phase joint, from which `library` was compiled.
  Verification(const ir::Module& joint, const LoadedLibrary& library, const ir::Point& point);

  void run();

  std::vector<Check> checks;
  std::string differences_note;  // "12 of 148 parameters"
  std::string bits;              // a hash of output, loss and gradients: equal bits, equal text

 private:
  bool has(const char* entry) const { return joint_.entry(entry) != nullptr; }
  /// Where everything is frozen nothing is left to differentiate.
  bool has_gradients(const char* entry) const;
  const ir::Graph& graph(const char* entry) const { return joint_.entry(entry)->graph; }
  void add(const std::string& group, const std::string& name, double error, double tolerance);
  void add_bits(const std::string& group, const std::string& name, bool same);
  void compare(const std::string& group, const std::string& name, const std::vector<double>& compiled,
               const std::vector<double>& expected, double floor = 0);
  struct Outputs {
    Outputs(const ir::Graph& graph, const ir::Point& point, int64_t real_bytes);
    std::vector<std::string> names;
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<void*> pointers;
  };
  void compare(const std::string& group, const Outputs& outputs);
  void compare_taps(const std::string& group, const char* entry);
  void share_parameters();

  // Entries against the interpreter.
  void forward(const char* entry, int last);
  void loss();
  void logprobs();
  void train();
  void vjp(const std::string& group, bool training);
  void step();
  double mean_of_last_run() const;
  void clear_gradients();
  bool drops() const { return inputs_.count("dropout") > 0; }
  /// The interpreter's next run draws what the library's next call does, which is its first.
  void share_dropout(bool drops);
  void compare_gradients(const std::string& group);
  std::vector<std::string> float_inputs() const;
  const tc_batch& forward_batch();

  // The interpreter against itself, the library against itself.
  double objective();
  double slope_along(const std::vector<double>& direction, const ir::Parameter& parameter, double step);
  void finite_differences();
  std::vector<const ir::Parameter*> parameters_to_differentiate() const;
  void decode();
  bool tokens_depend_on_others() const;
  void threads();
  struct Results;
  Results results_with(int threads);

  const ir::Module& joint_;
  const ir::Point point_;
  const LoadedLibrary& library_;
  LoadedModel model_;
  ir::Interpreter interpreter_;
  Inputs inputs_;
  Batch batch_;
  const std::vector<RandomEdit> edits_;  // set in every call of both
  tc_batch forward_batch_{};
  std::vector<double> train_gradients_;
};

}  // namespace tfc::tools
