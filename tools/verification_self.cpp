// The interpreter's gradients against differences of its own loss; the library's bits against its own.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include "ir/heads.h"
#include "ir/taps.h"
#include "tools/random.h"
#include "tools/report.h"
#include "tools/verification.h"

namespace tfc::tools {

using ir::Space;
using ir::Symbol;

namespace {
// Steps of differences, tried until one agrees. A small one seldom meets the kink of a relu; with a large one less is
// lost to rounding, where a parameter hardly moves the objective. A gradient that is wrong agrees with none.
constexpr double kSteps[] = {1e-5, 1e-4, 1e-3, 1e-6};
constexpr double kDifferencesAgree = 1e-4;  // relative
// Of a difference, times the objective: four evaluations, each off by its last bit at the least, over the step.
constexpr double kRounding = 2e-16 / kSteps[0];
constexpr double kLeastSlope = 1e-12;  // where objective and gradients are all but zero
}  // namespace

/// What vjp differentiates, or the mean loss, at the interpreter's present parameters.
double Verification::objective() {
  if (has("train")) {  // with dropout the loss that was differentiated is in train alone
    interpreter_.run(graph(drops() ? "train" : "loss"));
    return mean_of_last_run();
  }
  interpreter_.run(graph("infer"));
  double sum = 0;
  for (const ir::Output& named : graph("infer").outputs) {
    if (ir::is_tap(named.name)) continue;
    const ir::Tensor &output = interpreter_.output(named.name), &upstream = inputs_.at("grad_" + named.name);
    for (int64_t i = 0; i < output.elements(); ++i) sum += output[i] * upstream[i];
  }
  return sum;
}

/// The objective's derivative along a direction in one parameter, by differences of fourth order: what they leave out
/// is of the step's fourth power, so that the step may be large enough for rounding not to matter.
double Verification::slope_along(const std::vector<double>& direction, const ir::Parameter& parameter,
                                 double step) {
  const std::vector<double> before = interpreter_.read(Space::Params, parameter.name);
  const auto at = [&](double h) {
    std::vector<double> moved = before;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += h * direction[i];
    interpreter_.write(Space::Params, parameter.name, moved);
    return objective();
  };
  const double slope = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
  interpreter_.write(Space::Params, parameter.name, before);
  return slope;
}

void Verification::finite_differences() {
  const std::vector<double> gradients = has("train") ? train_gradients_ : interpreter_.block(Space::Grads);
  const std::vector<const ir::Parameter*> chosen = parameters_to_differentiate();
  differences_note = std::to_string(chosen.size()) + " of " + std::to_string(joint_.parameters.size()) + " parameters";
  if (chosen.empty()) return;  // all are frozen: there may be nothing to differentiate
  Random random(11);
  share_dropout(has("train"));
  // Slopes below it are rounding, of the gradients' sums or of differences: the weights of adapters hardly move a loss
  // at the start.
  const double rounding = kRounding * std::abs(objective()) / kDifferencesAgree;
  const double floor = std::max({kLeastShare * greatest_magnitude(gradients), rounding, kLeastSlope});
  for (const ir::Parameter* parameter : chosen) {
    std::vector<double> direction(static_cast<size_t>(parameter->elements()));
    double squares = 0, along = 0;
    for (double& value : direction) {
      value = random.normal();
      squares += value * value;
    }
    for (size_t i = 0; i < direction.size(); ++i) {
      direction[i] /= std::sqrt(squares);
      along += direction[i] * gradients[static_cast<size_t>(parameter->offset) + i];
    }
    double error = INFINITY;
    for (const double step : kSteps) {
      const double slope = slope_along(direction, *parameter, step);
      const double scale = std::max({std::abs(along), std::abs(slope), floor});
      error = std::min(error, std::abs(slope - along) / scale);
      if (error <= kDifferencesAgree) break;
    }
    add("finite differences", parameter->name, error, kDifferencesAgree);
  }
}

/// All of a small model's; of a large one as many, evenly spread, as the interpreter runs in about 20
/// seconds.
std::vector<const ir::Parameter*> Verification::parameters_to_differentiate() const {
  const double seconds_of_forward = forward_flops(joint_, point_) / 3e8 + 1e-4;
  const size_t all = joint_.parameters.size();
  const size_t count =
      std::clamp<size_t>(static_cast<size_t>(20 / (4 * seconds_of_forward)), 3, all < 3 ? 3 : all);
  std::vector<const ir::Parameter*> chosen;
  for (size_t i = 0; i < std::min(count, all); ++i) {
    const ir::Parameter& parameter = joint_.parameters[i * all / std::min(count, all)];
    if (!parameter.frozen) chosen.push_back(&parameter);
  }
  return chosen;
}

/// Does an expert's capacity make what a token gives depend on the others of its call? Then decoding is another function
/// than a forward of all tokens, for whom an expert has no place left depends on who comes in the same call; there is
/// nothing for `decode` to be equal to.
bool Verification::tokens_depend_on_others() const {
  const ir::Graph& decode = graph("decode");
  for (const ir::NodeId id : decode.nodes()) {
    const ir::Node& node = decode.node(id);
    if (node.op == ir::OpKind::Route && node.attributes.real("capacity") > 0) return true;
  }
  return false;
}

/// Two splits of the tokens through the cache against one forward without padding.
void Verification::decode() {
  const int64_t T = point_[Symbol::T], B = point_[Symbol::B];
  const Inputs inputs = with_short_prefixes(without_padding(inputs_));
  Batch whole(joint_, model_.info(), inputs, point_);
  const int64_t row = model_.info().out_width * model_.info().real_bytes;
  Outputs outputs(graph("infer"), point_, model_.info().real_bytes);
  const std::vector<uint8_t>& expected =
      outputs.bytes[static_cast<size_t>(std::max(0, ir::main_head(ir::heads_of(joint_.facts))))];
  std::vector<uint8_t> part(expected.size());
  tc_batch call = whole.batch;
  call.targets = nullptr;
  call.weights = nullptr;
  model_.check(model_.api().forward(model_.session(), &call, 0, outputs.pointers.data()));
  tc_batch memory = call;
  memory.T = 0;
  memory.tgt = nullptr;
  memory.mask = nullptr;
  const bool encodes = model_.info().kind == TC_KIND_ENCODER_DECODER;
  for (const int64_t first : {int64_t{1}, std::max<int64_t>(1, T / 2)}) {
    model_.check(model_.api().cache_reset(model_.session(), B, T, encodes ? &memory : nullptr));
    bool same = true;
    for (const auto& [begin, count] : {std::pair{int64_t{0}, first}, std::pair{first, T - first}}) {
      if (count == 0) continue;
      const tc_batch next = whole.slice(model_.info(), begin, count);
      model_.check(model_.api().decode(model_.session(), &next, part.data()));
      for (int64_t b = 0; b < B; ++b) {
        same &= std::memcmp(part.data() + b * count * row, expected.data() + (b * T + begin) * row,
                            static_cast<size_t>(count * row)) == 0;
      }
    }
    add_bits("decode", "as forward, split at " + std::to_string(first), same);
  }
}

struct Verification::Results {
  std::vector<std::vector<uint8_t>> outputs;
  std::vector<uint8_t> gradients;
  double mean = 0;
  bool operator==(const Results&) const = default;
};

Verification::Results Verification::results_with(int threads) {
  LoadedModel model(library_, 1, threads);
  set_edits(model, edits_);
  Results results;
  Outputs outputs(graph("infer"), point_, model.info().real_bytes);
  model.check(model.api().forward(model.session(), &batch_.batch, 0, outputs.pointers.data()));
  results.outputs = outputs.bytes;
  void* none[4] = {};
  if (has("train")) {
    model.check(model.api().backward(model.session(), &batch_.batch, &results.mean));
  } else if (has_gradients("vjp")) {
    model.check(model.api().vjp(model.session(), &forward_batch(), 0, batch_.grad_output, none));
  }
  if (const void* block = model.api().block(model.model(), TC_BLOCK_GRADIENTS)) {
    const auto* bytes = static_cast<const uint8_t*>(block);
    results.gradients.assign(bytes, bytes + model.info().gradient_block * model.info().real_bytes);
  }
  return results;
}

void Verification::threads() {
  const Results one = results_with(1);
  std::string all;
  for (const std::vector<uint8_t>& output : one.outputs) all.append(output.begin(), output.end());
  all.append(one.gradients.begin(), one.gradients.end());
  all.append(reinterpret_cast<const char*>(&one.mean), sizeof one.mean);
  bits = llvm::utohexstr(llvm::xxh3_64bits(all));
  for (int count = 2; count <= 4; ++count) {
    add_bits("threads", std::to_string(count) + " as 1", results_with(count) == one);
  }
}

}  // namespace tfc::tools
