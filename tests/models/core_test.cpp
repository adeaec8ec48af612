// The sizes that a library publishes are what it uses: every entry of the core runs in a workspace of exactly
// that size, before a page that nobody may touch, with every other array ending at such a page too; what the
// workspace held before makes no difference; and 64 bytes fewer are refused.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "models/descriptions.h"
#include "models/guarded.h"
#include "models/hooks.h"

namespace tfc::models {
namespace {

struct Shape {
  int64_t B, T, S;
};

constexpr Shape kShapes[] = {{1, 1, 1}, {3, 5, 7}, {1, 9, 1}, {7, 1, 9}, {2, 9, 9}, {33, 3, 2}};

/// One library's core beside a session on the same parameters.
class CoreRun {
 public:
  CoreRun(Session& session, const Shape& shape, int threads)
      : session_(session),
        functions_(*session.compiled.library),
        call_(random_call(session, shape.B, shape.T, shape.S)),
        guarded_(session, call_),
        threads_(threads) {}

  /// Guarded memory for what a call gave, by name.
  struct Arrays {
    explicit Arrays(const Results& expected) {
      for (const auto& [name, bytes] : expected) kept.emplace(name, bytes.size());
    }
    void* data(const std::string& name) const {
      const auto found = kept.find(name);
      return found == kept.end() ? nullptr : found->second.data();
    }
    std::map<std::string, Guarded> kept;
  };
  std::vector<void*> of_heads(const Arrays& arrays, const std::string& name) const {
    std::vector<void*> pointers;
    for (const ir::HeadFacts& head : session_.heads()) pointers.push_back(arrays.data(head.named(name)));
    return pointers;
  }
  static void expect_equal(const Arrays& arrays, const Results& expected) {
    for (const auto& [name, bytes] : expected) EXPECT_TRUE(arrays.kept.at(name).copy() == bytes) << name;
  }

  void infer() {
    if (!session_.compiled.has("infer")) return;
    const Results expected = session_.forward_heads(call_);
    const Arrays arrays(expected);
    const std::vector<void*> outputs = of_heads(arrays, "infer");
    run(TC_ENTRY_INFER, [&](GuardedCore& core) {
      return outputs.size() > 1 ? functions_.core_forward_heads(&core.core, &guarded_.batch, outputs.data())
                                : functions_.core_forward(&core.core, &guarded_.batch, 0, outputs[0]);
    });
    expect_equal(arrays, expected);
  }

  void last() {
    if (!session_.compiled.has("last")) return;
    const Bytes expected = session_.forward(call_, 1);
    const Guarded output(expected.size());
    run(TC_ENTRY_LAST, [&](GuardedCore& core) {
      return functions_.core_forward(&core.core, &guarded_.batch, 1, output.data());
    });
    EXPECT_TRUE(output.copy() == expected);
  }

  void logprobs() {
    if (!session_.compiled.has("logprobs")) return;
    const Results expected = session_.logprobs_heads(call_);
    const Arrays arrays(expected);
    const std::vector<void*> outputs = of_heads(arrays, "logprobs");
    run(TC_ENTRY_LOGPROBS, [&](GuardedCore& core) {
      return outputs.size() > 1 ? functions_.core_logprobs_heads(&core.core, &guarded_.batch, outputs.data())
                                : functions_.core_logprobs(&core.core, &guarded_.batch, outputs[0]);
    });
    expect_equal(arrays, expected);
  }

  /// The core tells each head's sum and count.
  double mean_of(const std::vector<double>& sums, const std::vector<double>& counts) const {
    double mean = 0;
    const std::vector<ir::HeadFacts> heads = session_.heads();
    for (size_t i = 0; i < heads.size(); ++i) mean += counts[i] > 0 ? heads[i].weight * (sums[i] / counts[i]) : 0;
    return mean;
  }

  void loss() {
    if (!session_.compiled.has("loss")) return;
    std::vector<double> sums(16), counts(16);
    run(TC_ENTRY_LOSS, [&](GuardedCore& core) {
      return functions_.core_loss(&core.core, &guarded_.batch, sums.data(), counts.data());
    });
    EXPECT_EQ(mean_of(sums, counts), session_.loss(call_));
  }

  void train() {
    if (!session_.compiled.has("train")) return;
    std::vector<double> sums(16), counts(16);
    const uint64_t number = session_.calls();
    const double mean = session_.backward(call_);
    const auto core = run(TC_ENTRY_TRAIN, [&](GuardedCore& core) {
      core.core.call = number;
      return functions_.core_train(&core.core, &guarded_.batch, 1, sums.data(), counts.data());
    });
    EXPECT_EQ(mean_of(sums, counts), mean);
    EXPECT_TRUE(core->grads.copy() == session_.block(TC_BLOCK_GRADIENTS));
  }

  void vjp() {
    if (!session_.compiled.has("vjp")) return;
    const Results expected = session_.vjp(call_, guarded_.grad_output);
    std::deque<Guarded> outputs;
    void* pointers[4] = {};
    for (const char* name : {"vjp grad_x", "vjp grad_src", "vjp grad_tgt", "vjp grad_memory", "vjp grad_image"}) {
      if (!expected.count(name)) continue;
      const size_t number = outputs.size();
      pointers[number] = outputs.emplace_back(expected.at(name).size()).data();
    }
    const auto core = run(TC_ENTRY_VJP, [&](GuardedCore& core) {
      return session_.info.heads_count > 1
                 ? functions_.core_vjp_heads(&core.core, &guarded_.batch, 0, guarded_.grad_output, pointers)
                 : functions_.core_vjp(&core.core, &guarded_.batch, 0, guarded_.grad_output[0], pointers);
    });
    EXPECT_TRUE(core->grads.copy() == session_.block(TC_BLOCK_GRADIENTS));
    size_t number = 0;
    for (const char* name : {"vjp grad_x", "vjp grad_src", "vjp grad_tgt", "vjp grad_memory", "vjp grad_image"}) {
      if (!expected.count(name)) continue;
      EXPECT_TRUE(outputs[number++].copy() == expected.at(name)) << name;
    }
  }

  void step() {
    if (!session_.compiled.has("train") && !session_.compiled.has("vjp")) return;
    session_.start_over();
    if (session_.compiled.has("train")) {
      session_.backward(call_);
    } else {
      session_.vjp(call_, guarded_.grad_output);
    }
    const Bytes gradients = session_.block(TC_BLOCK_GRADIENTS);
    const Bytes parameters = session_.block(TC_BLOCK_PARAMETERS);
    const double expected = session_.step();
    double norm = 0;
    tc_adamw settings = usual_settings();
    settings.count = 1;
    const auto core = run(TC_ENTRY_STEP, [&](GuardedCore& core) {
      std::memcpy(core.params.data(), parameters.data(), parameters.size());
      std::memcpy(core.grads.data(), gradients.data(), gradients.size());
      return functions_.core_step(&core.core, &settings, 1, &norm);
    });
    EXPECT_EQ(norm, expected);
    EXPECT_TRUE(core->params.copy() == session_.block(TC_BLOCK_PARAMETERS));
    EXPECT_TRUE(core->moment1.copy() == session_.block(TC_BLOCK_MOMENT1));
    EXPECT_TRUE(core->moment2.copy() == session_.block(TC_BLOCK_MOMENT2));
    session_.start_over();
  }

  /// Twice, so that the second finds a filled cache; a pair's source is encoded first.
  void decode() {
    if (!session_.compiled.has("decode")) return;
    const tc_batch& batch = guarded_.batch;
    const int64_t capacity = 2 * batch.T + 1;
    if (session_.info.max_seq > 0 && capacity > session_.info.max_seq) return;
    session_.reset_cache(call_, capacity);
    const Bytes first = session_.decode(call_), second = session_.decode(call_);
    const Guarded cache(session_.api.memory(TC_MEMORY_CACHE, batch.B, capacity, batch.S, 0));
    const Guarded lengths(static_cast<size_t>(batch.B) * 4, 0), output(first.size());
    const auto with_cache = [&](GuardedCore& core) -> tc_core* {
      core.core.cache = cache.data();
      core.core.capacity = capacity;
      core.core.cache_lengths = static_cast<const int32_t*>(lengths.data());
      return &core.core;
    };
    if (session_.is_pair()) {
      tc_batch source = batch;
      source.T = 0;
      source.tgt = nullptr;
      source.mask = nullptr;
      source.lengths = nullptr;
      source.targets = nullptr;
      source.weights = nullptr;
      run(TC_ENTRY_ENCODE,
          [&](GuardedCore& core) { return functions_.core_encode(with_cache(core), &source); });
    }
    const size_t bytes = functions_.decode_workspace_bytes(batch.B, batch.T, batch.S, capacity, threads_);
    for (const Bytes& expected : {first, second}) {
      run_in(bytes, [&](GuardedCore& core) {
        return functions_.core_decode(with_cache(core), &batch, output.data());
      });
      EXPECT_TRUE(output.copy() == expected) << "decode";
      for (int64_t b = 0; b < batch.B; ++b) {
        int32_t brings = static_cast<int32_t>(batch.T);
        if (batch.lengths) brings = batch.lengths[b];
        if (batch.mask)
          brings =
              static_cast<int32_t>(std::count(batch.mask + b * batch.T, batch.mask + (b + 1) * batch.T, 1));
        static_cast<int32_t*>(lengths.data())[b] += brings;
      }
    }
  }

 private:
  template <typename Function>
  std::unique_ptr<GuardedCore> run(int entry, Function function) {
    const tc_batch& batch = guarded_.batch;
    return run_in(functions_.workspace_bytes(entry, batch.B, batch.T, batch.S, threads_), function);
  }

  template <typename Function>
  std::unique_ptr<GuardedCore> run_in(size_t bytes, Function function) {
    GuardedCore small(session_, bytes - 64, threads_);
    EXPECT_EQ(function(small), TC_E_MEMORY);
    EXPECT_NE(std::string(small.error).find("workspace_bytes"), std::string::npos) << small.error;

    auto core = std::make_unique<GuardedCore>(session_, bytes, threads_);
    if (threads_ > 1) core->core.parallel_for = on_three_threads;
    EXPECT_EQ(function(*core), TC_OK) << core->error;
    return core;
  }

  Session& session_;
  CoreFunctions functions_;
  Call call_;
  GuardedCall guarded_;
  int threads_;
};

class Core : public testing::TestWithParam<std::tuple<const char*, ir::DType, const char*>> {};

TEST_P(Core, RunsInExactlyThePublishedWorkspace) {
  const auto& [name, precision, cpu] = GetParam();
  if (!runs_here(cpu)) GTEST_SKIP() << "this machine has no " << cpu;
  const Compiled compiled = compile(case_named(name).text, {.precision = precision, .cpu = cpu});
  Session session(compiled);
  for (const int threads : {1, 3}) {
    for (const Shape& shape : kShapes) {
      if (session.info.max_seq > 0 && std::max(shape.T, shape.S) > session.info.max_seq) continue;
      SCOPED_TRACE("B=" + std::to_string(shape.B) + " T=" + std::to_string(shape.T) +
                   " S=" + std::to_string(shape.S) + ", " + std::to_string(threads) + " threads");
      CoreRun run(session, shape, threads);
      run.infer();
      run.last();
      run.logprobs();
      run.loss();
      run.train();
      run.vjp();
      run.step();
      run.decode();
    }
  }
}

constexpr auto kF32 = ir::DType::F32, kF64 = ir::DType::F64;

INSTANTIATE_TEST_SUITE_P(
    Models, Core,
    testing::Values(std::tuple("gpt", kF32, "x86-64-v3"), std::tuple("gpt", kF64, "x86-64-v4"),
                    std::tuple("llama", kF32, "x86-64-v4"), std::tuple("llama", kF64, "x86-64-v2"),
                    std::tuple("transformer", kF32, "x86-64-v4"),
                    std::tuple("transformer_post", kF64, "x86-64-v3"), std::tuple("bert", kF32, "x86-64-v4"),
                    std::tuple("pair_of_floats", kF32, "x86-64-v2"), std::tuple("memory", kF32, "x86-64-v3"),
                    std::tuple("grouped", kF32, "x86-64-v4"), std::tuple("mixtral", kF32, "x86-64-v4"),
                    std::tuple("switch_decoder", kF64, "x86-64-v3")),
    [](const auto& info) {
      return std::string(std::get<0>(info.param)) + "_" +
             std::string(ir::dtype_name(std::get<1>(info.param))) + "_" + (std::get<2>(info.param) + 7);
    });

}  // namespace
}  // namespace tfc::models
