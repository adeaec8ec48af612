// Every entry of the library against the interpreter.
#include "tools/verification.h"

#include <algorithm>
#include <cmath>

#include "ir/heads.h"
#include "ir/taps.h"
#include "tools/random.h"

namespace tfc::tools {

using ir::Space;

namespace {
constexpr uint64_t kCall = uint64_t{3} << 32 | 5;  // of dropout: both halves count
}

double greatest_magnitude(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::isnan(value) ? value : std::max(most, std::abs(value));
  return most;
}

bool Verification::has_gradients(const char* entry) const {
  if (!has(entry)) return false;
  const auto is_gradient = [](const ir::Output& output) { return !output.name.starts_with(ir::kTap); };
  return std::any_of(graph(entry).outputs.begin(), graph(entry).outputs.end(), is_gradient);
}

namespace {

/// The greatest difference, relative to the larger of the tensor's own greatest magnitude and `floor`.
double relative_error(const std::vector<double>& compiled, const std::vector<double>& expected,
                      double floor) {
  double most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = compiled[i] == expected[i] ? 0 : std::abs(compiled[i] - expected[i]);
    if (std::isnan(difference)) return difference;
    most = std::max(most, difference);
  }
  const double scale = std::max(greatest_magnitude(expected), floor);
  return most == 0 ? 0 : scale > 0 ? most / scale : INFINITY;
}

}  // namespace

Verification::Verification(const ir::Module& joint, const LoadedLibrary& library, const ir::Point& point)
    : joint_(joint),
      point_(point),
      library_(library),
      model_(library, 1, 1),
      interpreter_(joint, point),
      inputs_(random_inputs(joint, point, 7, true)),
      batch_(joint, model_.info(), inputs_, point),
      edits_(random_edits(joint, point)) {
  share_parameters();
  interpreter_.inputs = inputs_;
  set_edits(model_, edits_);
  set_edits(interpreter_, edits_);
}

void Verification::run() {
  if (has("infer")) forward("infer", 0);
  if (has("last")) forward("last", 1);
  if (has("loss")) loss();
  if (has("logprobs")) logprobs();
  if (has("train")) train();
  if (has_gradients("vjp") && drops()) vjp("vjp with dropout", true);
  if (has_gradients("vjp")) vjp("vjp", false);
  if (has("train") || has("vjp")) finite_differences();
  if (has("step") && (has("train") || has_gradients("vjp"))) step();
  if (has("decode") && !tokens_depend_on_others()) decode();
  threads();
}

void Verification::add(const std::string& group, const std::string& name, double error, double tolerance) {
  checks.push_back({group, name, error, tolerance});
}

void Verification::add_bits(const std::string& group, const std::string& name, bool same) {
  add(group, name, same ? 0 : 1, 0);
}

void Verification::compare(const std::string& group, const std::string& name,
                           const std::vector<double>& compiled, const std::vector<double>& expected,
                           double floor) {
  // Gradients are long sums of terms that cancel (a key bias's to nothing): in float32 they keep fewer
  // digits.
  const bool sums = name.starts_with("grads:") || name.starts_with("params:") || ir::is_tap_gradient(name);
  const double tolerance = joint_.real == ir::DType::F64 ? 1e-10 : sums ? 5e-5 : 1e-5;
  add(group, name, relative_error(compiled, expected, floor), tolerance);
}

// What begins as a constant (biases 0, gains 1) is moved away from it: a bias that is forgotten must show.
void Verification::share_parameters() {
  Random random(3);
  for (const tc_parameter& parameter : model_.parameters()) {
    void* data = model_.api().parameter(model_.model(), parameter.name);
    std::vector<double> values = model_.read(data, parameter.elements);
    if (joint_.parameter(parameter.name)->init.kind == ir::Init::Kind::Constant) {
      for (double& value : values) value += 0.1 * random.normal();
      model_.write(data, values);
      values = model_.read(data, parameter.elements);
    }
    interpreter_.write(Space::Params, parameter.name, values);
  }
}

/// Results of an entry, by the names of its outputs, as memory that a call of the library fills.
Verification::Outputs::Outputs(const ir::Graph& graph, const ir::Point& point, int64_t real_bytes) {
  for (const ir::Output& output : graph.outputs) {
    if (ir::is_tap(output.name)) continue;
    names.push_back(output.name);
    bytes.emplace_back(static_cast<size_t>(graph.type(output.value).elements().at(point) * real_bytes));
    pointers.push_back(bytes.back().data());
  }
}

void Verification::compare(const std::string& group, const Outputs& outputs) {
  for (size_t i = 0; i < outputs.names.size(); ++i) {
    const ir::Tensor& expected = interpreter_.output(outputs.names[i]);
    compare(group, outputs.names[i], model_.read(outputs.pointers[i], expected.elements()), expected.data);
  }
}

/// What the entry shows of its inside, after both have run it.
void Verification::compare_taps(const std::string& group, const char* entry) {
  const std::vector<std::string> names = ir::tapped_names(joint_);
  double greatest = 0;  // of all gradients
  for (const ir::Output& output : graph(entry).outputs) {
    if (ir::is_tap_gradient(output.name)) greatest = std::max(greatest, greatest_magnitude(interpreter_.output(output.name).data));
  }
  for (const ir::Output& output : graph(entry).outputs) {
    if (!ir::is_tap(output.name)) continue;
    const auto number = std::find(names.begin(), names.end(), ir::tapped_name(output.name)) - names.begin();
    tc_array array{};
    array.size = sizeof array;
    model_.check(model_.api().tap(model_.session(), static_cast<int32_t>(number), ir::is_tap_gradient(output.name), &array));
    const ir::Tensor& expected = interpreter_.output(output.name);
    std::vector<int64_t> shape(array.shape, array.shape + array.rank);
    if (shape == expected.shape) {
      compare(group, output.name, model_.read(array.data, expected.elements()), expected.data,
              ir::is_tap_gradient(output.name) ? kLeastShare * greatest : 0);
    } else {
      add(group, output.name + ": shape", NAN, 0);
    }
  }
}

void Verification::forward(const char* entry, int last) {
  interpreter_.run(graph(entry));
  Outputs outputs(graph(entry), point_, model_.info().real_bytes);
  model_.check(model_.api().forward(model_.session(), &batch_.batch, last, outputs.pointers.data()));
  compare(entry, outputs);
  compare_taps(entry, entry);
}

/// As the run time adds up the losses of several heads.
double Verification::mean_of_last_run() const {
  double whole = 0;
  for (const ir::HeadFacts& head : ir::heads_of(joint_.facts)) {
    if (!head.has_loss()) continue;
    const double count = interpreter_.output(head.named("loss.count"))[0];
    whole += count > 0 ? head.weight * interpreter_.output(head.named("loss.sum"))[0] / count : 0;
  }
  return whole;
}

void Verification::loss() {
  double mean = 0;
  model_.check(model_.api().loss(model_.session(), &batch_.batch, &mean));
  interpreter_.run(graph("loss"));
  compare("loss", "mean", {mean}, {mean_of_last_run()});
  compare_taps("loss", "loss");
}

void Verification::logprobs() {
  interpreter_.run(graph("logprobs"));
  Outputs outputs(graph("logprobs"), point_, model_.info().real_bytes);
  std::vector<void*> pointers;  // of all heads
  size_t next = 0;
  for (const ir::HeadFacts& head : ir::heads_of(joint_.facts)) {
    pointers.push_back(head.has_class_targets() ? outputs.pointers[next++] : nullptr);
  }
  model_.check(model_.api().head_logprobs(model_.session(), &batch_.batch, pointers.data()));
  compare("logprobs", outputs);
  compare_taps("logprobs", "logprobs");
}

void Verification::clear_gradients() {
  std::vector<double>& grads = interpreter_.block(Space::Grads);
  std::fill(grads.begin(), grads.end(), 0.0);
}

void Verification::compare_gradients(const std::string& group) {
  const double floor = std::max(kLeastShare * greatest_magnitude(interpreter_.block(Space::Grads)), kLeastGradient);
  for (const tc_parameter& parameter : model_.parameters()) {
    if (parameter.frozen) continue;
    const void* gradient = model_.api().gradient(model_.model(), parameter.name);
    const std::vector<double> expected = interpreter_.read(Space::Grads, parameter.name);
    if (!gradient) {
      add(group, std::string("grads:") + parameter.name, NAN, 0);
    } else {
      compare(group, std::string("grads:") + parameter.name, model_.read(gradient, parameter.elements),
              expected, floor);
    }
  }
}

void Verification::share_dropout(bool drops) {
  if (!this->drops()) return;
  tc_state state{};
  state.size = sizeof state;
  model_.check(model_.api().get_state(model_.model(), &state));
  state.call = kCall;
  model_.check(model_.api().set_state(model_.model(), &state));
  const auto word = [](uint64_t bits) { return static_cast<double>(static_cast<int32_t>(bits)); };
  interpreter_.inputs["dropout"] = ir::Tensor(
      ir::DType::I32, {5},
      {word(state.seed), word(state.seed >> 32), word(kCall), word(kCall >> 32), drops ? 1.0 : 0.0});
}

void Verification::train() {
  share_dropout(true);
  double mean = 0;
  model_.check(model_.api().backward(model_.session(), &batch_.batch, &mean));
  clear_gradients();
  interpreter_.run(graph("train"));
  compare("train", "mean", {mean}, {mean_of_last_run()});
  compare_taps("train", "train");
  interpreter_.commit();
  compare_gradients("train");
  train_gradients_ = interpreter_.block(Space::Grads);
}

/// The float inputs whose gradients vjp returns, in the order of tc_api.
std::vector<std::string> Verification::float_inputs() const {
  std::vector<std::string> names;
  for (const char* name : {"x", "src", "tgt", "memory", "image"}) {
    if (graph("vjp").output(std::string("grad_") + name).valid()) names.push_back(name);
  }
  return names;
}

void Verification::vjp(const std::string& group, bool training) {
  share_dropout(training);
  clear_gradients();
  interpreter_.run(graph("vjp"));
  const std::vector<std::string> names = float_inputs();
  std::vector<std::vector<uint8_t>> bytes;
  for (const std::string& name : names) {
    bytes.emplace_back(static_cast<size_t>(inputs_.at(name).elements() * model_.info().real_bytes));
  }
  void* grad_inputs[4] = {};
  for (size_t i = 0; i < bytes.size(); ++i) grad_inputs[i] = bytes[i].data();
  model_.check(model_.api().vjp(model_.session(), &forward_batch(), training, batch_.grad_output, grad_inputs));
  for (size_t i = 0; i < names.size(); ++i) {
    const ir::Tensor& expected = interpreter_.output("grad_" + names[i]);
    compare(group, "grad_" + names[i], model_.read(bytes[i].data(), expected.elements()), expected.data);
  }
  compare_taps(group, "vjp");
  interpreter_.commit();
  compare_gradients(group);
}

// Without targets, which a vjp does not read.
const tc_batch& Verification::forward_batch() {
  forward_batch_ = batch_.batch;
  forward_batch_.targets = nullptr;
  forward_batch_.weights = nullptr;
  return forward_batch_;
}

void Verification::step() {
  const bool from_loss = has("train");
  share_dropout(from_loss);
  double mean = 0;
  void* no_gradients[4] = {};
  model_.check(from_loss
                   ? model_.api().backward(model_.session(), &batch_.batch, &mean)
                   : model_.api().vjp(model_.session(), &forward_batch(), 0, batch_.grad_output, no_gradients));
  if (from_loss) interpreter_.block(Space::Grads) = train_gradients_;
  tc_adamw settings{};
  settings.size = sizeof settings;
  settings.lr = 1e-3;
  settings.beta1 = 0.9;
  settings.beta2 = 0.95;
  settings.eps = 1e-5;
  settings.weight_decay = 0.1;
  settings.clip = 1;
  double norm = 0;
  model_.check(model_.api().step(model_.session(), &settings, &norm));

  const int64_t count = static_cast<int64_t>(model_.parameters().size());
  ir::Tensor lr_scale(ir::DType::F64, {count}), decay(ir::DType::F64, {count});
  for (int64_t i = 0; i < count; ++i) {
    lr_scale[i] = 1;
    decay[i] = model_.parameters()[static_cast<size_t>(i)].decayed;
  }
  const ir::Tensor one(ir::DType::F64, {}, {1.0});
  interpreter_.inputs["count"] = one;
  interpreter_.inputs["clip"] = one;
  interpreter_.inputs["hyper"] = ir::Tensor(ir::DType::F64, {8}, {1e-3, 0.9, 0.95, 1e-5, 0.1, 1, 0, 0});
  interpreter_.inputs["lr_scale"] = lr_scale;
  interpreter_.inputs["decay"] = decay;
  interpreter_.run(graph("step"));
  compare("step", "norm", {norm}, {interpreter_.output("norm")[0]}, kLeastGradient);
  interpreter_.commit();
  for (const tc_parameter& parameter : model_.parameters()) {
    compare("step", std::string("params:") + parameter.name,
            model_.read(model_.api().parameter(model_.model(), parameter.name), parameter.elements),
            interpreter_.read(Space::Params, parameter.name));
  }
}

}  // namespace tfc::tools
