// The unit of compilation: parameters and the named entry graphs that share them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"

namespace tfc::ir {

enum class Phase : uint8_t { Blocks, Ops, Joint, Fused, Planned };
std::string_view phase_name(Phase phase);  // "blocks"
std::optional<Phase> phase_from_name(std::string_view name);

/// How a parameter begins. Normal: mean 0, deviation `value`. Uniform: [-value, value]. Constant: `value`.
struct Init {
  enum class Kind : uint8_t { Constant, Normal, Uniform } kind = Kind::Constant;
  double value = 0;
  friend bool operator==(const Init&, const Init&) = default;
};

struct Parameter {
  std::string name;  // as documented: "layers.0.attn.q.weight"
  std::vector<int64_t> shape;
  Init init;
  bool decayed = false;  // rank >= 2
  bool frozen = false;   // never moves: no gradient, no moments
  bool joins_previous =
      false;           // follows the parameter before it without a gap: q,k,v and gate,up are one matrix
  int64_t offset = 0;  // in elements of the parameter block; see lay_out_parameters
  Place place;
  int64_t elements() const;
};

/// A pattern of the description. What it freezes: a part ("embedding", "layers.0-5", "head") or a glob of parameter
/// names; what it taps or edits: a glob of values' names.
struct Freeze {
  std::string pattern;
  Place place;
};

/// What the backward computes again instead of keeping it, as the description says.
struct Recompute {
  std::string mode = "none";              // none | all | auto
  int64_t bytes = 0, batch = 0, seq = 0;  // auto: what training may own, at that point
  Place place;
};

/// Low-rank adapters beside the weights that the targets name, the only parameters that move; rank 0: none.
struct Lora {
  int64_t rank = 0;
  double alpha = 0;              // their product counts alpha / rank
  std::vector<Freeze> targets;   // globs of weights' names, or ends of them
  Place place;
};

/// A constant blob that kernels read (f64 frequencies, ...).
struct Constant {
  std::string name;
  std::vector<double> values;
};

struct Entry {
  std::string name;  // phases blocks and ops: "model"; from joint on: infer, last, loss, logprobs, train,
                     // vjp, step, decode, encode
  Graph graph;
  std::optional<Plan> plan;  // phase planned
};

struct Module {
  std::string name;  // symbol prefix
  Phase phase = Phase::Blocks;
  DType real = DType::F32;
  /// What the run time, the header and the Python module need to know of the model (ir/blocks.h lists the
  /// keys).
  Attributes facts;
  std::string description;            // the resolved TOML text
  std::vector<Freeze> freezes;        // phase blocks; from ops on parameters say it themselves
  std::vector<Freeze> taps;           // globs of values to show, until add-taps makes outputs of them
  std::vector<Freeze> edits;          // globs of values that callers may change, until add-edits
  Recompute recompute;
  Lora lora;                          // phase blocks; expand makes the adapters
  std::vector<Parameter> parameters;  // in the documented order, see lay_out_parameters
  std::vector<Constant> constants;
  std::vector<Entry> entries;

  Entry* entry(std::string_view name);  // null when there is none
  const Entry* entry(std::string_view name) const;
  const Parameter* parameter(std::string_view name) const;
  int64_t parameter_count() const;  // numbers, without padding
  int64_t parameter_block() const;  // elements of the block, with padding
  int64_t trained_block() const;    // of those the first, which parameters that move take: at least 16
  /// Elements of the gradients, and of each moment: trained_block, or the whole block where a graph keeps
  /// the gradient of a frozen parameter (prune-frozen has not run).
  int64_t gradient_block() const;
};

/// For those that look up many: where each parameter is in the list, the first of equal names.
std::unordered_map<std::string_view, size_t> parameter_numbers(const Module& module);

/// Gives every parameter its offset: first those that move, then the frozen ones, so that gradients and
/// moments have the same offsets and end where the frozen ones begin. Within each group in order: one that
/// joins its predecessor follows without a gap, any other starts at a multiple of 16 elements; padding is
/// zero for ever. Only neighbours so joined may be named "a+b" in a graph.
void lay_out_parameters(Module& module);

/// "a+b+c" -> {"a","b","c"}
std::vector<std::string> split_joined_name(std::string_view name);

/// Text form (.tcir), of any phase. print(read(print(m))) == print(m), byte for byte.
enum class Places : uint8_t { With, Without };  // of the user's files
std::string print(const Module& module, Places places = Places::With);
std::string print(const Entry& entry, const Module& module);  // one entry alone, for --print-after
std::optional<Module> read_module(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics);

/// Checks structure, types and what is legal in the module's phase. False: diagnostics say what and where
/// (the fault of a dump's author, or of a pass).
bool verify(const Module& module, Diagnostics& diagnostics);

/// Graphviz text of one entry, with costs at `point`.
std::string dot(const Module& module, const Entry& entry, const Point& point);

}  // namespace tfc::ir
