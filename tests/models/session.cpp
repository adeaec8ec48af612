#include "models/session.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tools/random.h"

namespace tfc::models {

std::string differences(const Results& a, const Results& b) {
  std::string names;
  for (const auto& [name, bytes] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != bytes) names += name + "; ";
  }
  for (const auto& [name, bytes] : b) {
    if (!a.count(name)) names += name + "; ";
  }
  return names;
}

tc_options with_threads(int threads) {
  tc_options options{};
  options.size = sizeof options;
  options.threads = threads;
  return options;
}

Session::Session(const Compiled& compiled, tc_options options) : compiled(compiled), api(compiled.api()) {
  char error[512] = "";
  options.error = error;
  options.error_size = sizeof error;
  if (api.model_create(&options, &model) != TC_OK) throw std::runtime_error(error);
  if (api.session_create(model, &options, &session) != TC_OK)
    throw std::runtime_error(api.model_message(model));
  info.size = sizeof info;
  api.info(&info);
  randomise(1);
}

Session::~Session() {
  api.session_destroy(session);
  api.model_destroy(model);
}

void Session::check(tc_status status) const {
  if (status != TC_OK) throw std::runtime_error(std::string(api.status_text(status)) + ": " + message());
}

void Session::randomise(uint64_t seed) {
  tools::Random random(seed);
  for (int32_t i = 0; i < info.parameter_count; ++i) {
    tc_parameter parameter{};
    parameter.size = sizeof parameter;
    check(api.parameter_info(i, &parameter));
    void* data = api.parameter(model, parameter.name);
    // Gains near 1, all else small: deep models then neither vanish nor explode.
    const bool gain = parameter.rank == 1 && std::string(parameter.name).ends_with("weight");
    for (int64_t e = 0; e < parameter.elements; ++e) {
      const double value = (gain ? 1 : 0) + 0.3 * random.normal();
      if (real_bytes() == 8) static_cast<double*>(data)[e] = value;
      if (real_bytes() == 4) static_cast<float*>(data)[e] = static_cast<float>(value);
    }
  }
}

void Session::start_over() {
  check(api.zero_grad(session));
  for (const int which : {TC_BLOCK_MOMENT1, TC_BLOCK_MOMENT2}) {
    if (void* block = api.block(model, which)) {
      std::memset(block, 0, static_cast<size_t>(info.gradient_block * real_bytes()));
    }
  }
  tc_state state{};
  state.size = sizeof state;
  check(api.set_state(model, &state));
  randomise(1);
}

Bytes Session::block(int which) const {
  const auto* data = static_cast<const uint8_t*>(api.block(model, which));
  if (!data) return {};
  int64_t elements = which == TC_BLOCK_PARAMETERS ? info.parameter_block : info.gradient_block;
  for (int32_t i = 0; i < info.parameter_count && which != TC_BLOCK_PARAMETERS; ++i) {
    tc_parameter parameter{};
    parameter.size = sizeof parameter;
    check(api.parameter_info(i, &parameter));
    if (parameter.frozen) elements = std::min(elements, parameter.offset);
  }
  return Bytes(data, data + elements * real_bytes());
}

Results Session::state() const {
  tc_state state{};
  state.size = sizeof state;
  check(api.get_state(model, &state));
  const auto* bytes = reinterpret_cast<const uint8_t*>(&state);
  return {{"parameters", block(TC_BLOCK_PARAMETERS)},
          {"gradients", block(TC_BLOCK_GRADIENTS)},
          {"moment1", block(TC_BLOCK_MOMENT1)},
          {"moment2", block(TC_BLOCK_MOMENT2)},
          {"state", Bytes(bytes, bytes + sizeof state)}};
}

size_t Session::output_bytes(const char* entry, const char* output, const tc_batch& batch) const {
  const ir::Graph& graph = compiled.joint.entry(entry)->graph;
  const ir::Type& type = graph.type(graph.output(output));
  return static_cast<size_t>(type.elements().at(models::point(batch.B, batch.T, batch.S)) * real_bytes());
}

Results Session::forward_heads(const tc_batch& batch) {
  Results results;
  std::vector<void*> outputs;
  for (const ir::HeadFacts& head : heads()) {
    Bytes& bytes = results[head.named("infer")];
    bytes.assign(output_bytes("infer", head.named("output").c_str(), batch), 0xa5);
    outputs.push_back(bytes.data());
  }
  check(api.forward(session, &batch, 0, outputs.data()));
  return results;
}

Bytes Session::forward(const tc_batch& batch, int last) {
  if (!last) return forward_heads(batch).at(main_head().named("infer"));
  Bytes bytes(output_bytes("last", "output", batch), 0xa5);
  void* outputs[] = {bytes.data()};
  check(api.forward(session, &batch, last, outputs));
  return bytes;
}

Results Session::logprobs_heads(const tc_batch& batch) {
  Results results;
  std::vector<void*> outputs;
  for (const ir::HeadFacts& head : heads()) {
    outputs.push_back(nullptr);
    if (!head.has_class_targets()) continue;
    Bytes& bytes = results[head.named("logprobs")];
    bytes.assign(output_bytes("logprobs", head.named("logprobs").c_str(), batch), 0xa5);
    outputs.back() = bytes.data();
  }
  check(api.head_logprobs(session, &batch, outputs.data()));
  return results;
}

Bytes Session::logprobs(const tc_batch& batch) {
  Bytes bytes(output_bytes("logprobs", "logprobs", batch), 0xa5);
  check(api.logprobs(session, &batch, bytes.data()));
  return bytes;
}

Bytes Session::losses() {
  std::vector<double> values(2 * static_cast<size_t>(info.heads_count));
  check(api.losses(session, values.data(), values.data() + info.heads_count));
  Bytes bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<ir::HeadFacts> Session::heads() const { return ir::heads_of(compiled.joint.facts); }

ir::HeadFacts Session::main_head() const {
  return heads()[static_cast<size_t>(std::max(0, ir::main_head(heads())))];
}

double Session::loss(const tc_batch& batch) {
  double mean = 0;
  check(api.loss(session, &batch, &mean));
  return mean;
}

double Session::backward(const tc_batch& batch) {
  double mean = 0;
  check(api.backward(session, &batch, &mean));
  return mean;
}

uint64_t Session::calls() const {
  tc_state state{};
  state.size = sizeof state;
  check(api.get_state(model, &state));
  return state.call;
}

bool Session::drops(const char* entry) const {
  return compiled.has(entry) && compiled.joint.entry(entry)->graph.find("dropout").valid();
}

Results Session::vjp(const tc_batch& batch, const void* const* grad_output, bool training) {
  Results results;
  void* pointers[4] = {};
  int count = 0;
  for (const char* name : {"grad_x", "grad_src", "grad_tgt", "grad_memory", "grad_image"}) {
    if (!compiled.joint.entry("vjp")->graph.output(name).valid()) continue;
    Bytes& bytes = results[std::string("vjp ") + name];
    bytes.assign(output_bytes("vjp", name, batch), 0xa5);
    pointers[count++] = bytes.data();
  }
  check(api.vjp(session, &batch, training, grad_output, pointers));
  return results;
}

tc_adamw usual_settings() {
  tc_adamw settings{};
  settings.size = sizeof settings;
  settings.lr = 1e-2;
  settings.beta1 = 0.9;
  settings.beta2 = 0.95;
  settings.eps = 1e-6;
  settings.weight_decay = 0.1;
  settings.clip = 1;
  return settings;
}

double Session::step() {
  const tc_adamw settings = usual_settings();
  double norm = 0;
  check(api.step(session, &settings, &norm));
  return norm;
}

void Session::reset_cache(const tc_batch& batch, int64_t capacity) {
  tc_batch source = batch;
  source.T = 0;
  source.tgt = nullptr;
  source.mask = nullptr;
  source.lengths = nullptr;
  source.targets = nullptr;
  source.weights = nullptr;
  check(api.cache_reset(session, batch.B, capacity, is_pair() ? &source : nullptr));
}

Bytes Session::decode(const tc_batch& next) {
  Bytes bytes(static_cast<size_t>(next.B * next.T * info.out_width * real_bytes()), 0xa5);
  tc_batch batch = next;  // the source is in the cache
  batch.src = nullptr;
  batch.src_mask = nullptr;
  batch.src_lengths = nullptr;
  batch.memory = nullptr;
  batch.targets = nullptr;
  batch.weights = nullptr;
  check(api.decode(session, &batch, bytes.data()));
  return bytes;
}

namespace {

Bytes bytes_of(double value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

Results Session::everything(const tc_batch& batch, const void* const* grad_output, bool decodes) {
  start_over();
  Results results;
  if (compiled.has("infer")) results = forward_heads(batch);
  if (compiled.has("last")) results["last"] = forward(batch, 1);
  if (compiled.has("loss")) results["loss"] = bytes_of(loss(batch));
  if (compiled.has("loss")) results["losses"] = losses();
  if (compiled.has("logprobs")) results.merge(logprobs_heads(batch));
  if (compiled.has("vjp")) {
    results = [&] {
      Results with = vjp(batch, grad_output);
      with.insert(results.begin(), results.end());
      return with;
    }();
    results["vjp gradients"] = block(TC_BLOCK_GRADIENTS);
  }
  if (drops("vjp")) {
    for (auto& [name, bytes] : vjp(batch, grad_output, true)) results["dropped " + name] = std::move(bytes);
    results["dropped vjp gradients"] = block(TC_BLOCK_GRADIENTS);
  }
  if (compiled.has("train")) {
    results["train mean"] = bytes_of(backward(batch));
    results["train gradients"] = block(TC_BLOCK_GRADIENTS);
  }
  if (compiled.has("step") && (compiled.has("train") || compiled.has("vjp"))) {
    results["step norm"] = bytes_of(step());
    results["step parameters"] = block(TC_BLOCK_PARAMETERS);
    results["step moments 1"] = block(TC_BLOCK_MOMENT1);
    results["step moments 2"] = block(TC_BLOCK_MOMENT2);
  }
  if (compiled.has("decode") && decodes) {
    randomise(1);
    reset_cache(batch, batch.T);
    results["decode"] = decode(batch);
  }
  return results;
}

std::vector<double> numbers(const Session& session, const Bytes& bytes) {
  std::vector<double> values(bytes.size() / static_cast<size_t>(session.real_bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (session.real_bytes() == 8) std::memcpy(&values[i], bytes.data() + 8 * i, 8);
    if (session.real_bytes() == 4) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values[i] = value;
    }
  }
  return values;
}

Call::Call(const Session& session, const tools::Inputs& given, const ir::Point& where)
    : inputs(given), point(where), batch(session.compiled.joint, session.info, inputs, point) {}

Call random_call(const Session& session, int64_t B, int64_t T, int64_t S, uint64_t seed, bool padded) {
  const ir::Point point = point_for(session.compiled.joint, B, T, S);
  return {session, tools::random_inputs(session.compiled.joint, point, seed, padded), point};
}

}  // namespace tfc::models
