// Creation: initialisation, options, hooks, limits, what the library tells of itself.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "fake_models.h"
#include "runtime/mathematics.h"
#include "table_builder.h"

namespace tc::test {
namespace {

std::vector<float> initial(uint64_t seed, int threads) {
  tc_options options = options_of(threads);
  options.seed = seed;
  const Fixture f(decoder(), options);
  return {f.parameters(), f.parameters() + kBlock};
}

TEST(Initialisation, ByTheTableAndTheSeedAlone) {
  const std::vector<float> p = initial(7, 1);
  EXPECT_EQ(initial(7, 4), p);
  EXPECT_NE(initial(8, 1), p);
  const std::set<float> distinct(p.begin(), p.begin() + 16);
  EXPECT_EQ(distinct.size(), 16u);
  for (int i = 16; i < 32; ++i) EXPECT_EQ(p[i], 0.25f);
  for (int i = 32; i < 37; ++i) EXPECT_TRUE(std::fabs(p[i]) <= 0.1f && p[i] != 0) << p[i];
  for (int i = 37; i < kBlock; ++i) EXPECT_EQ(p[i], 0.0f) << "padding";
}

/// A model of one large parameter, so that several tasks fill it.
const ModelDesc& large(TableBuilder& t, InitKind init, double value) {
  constexpr int64_t kElements = 200'001;
  t.desc().real = TypeF64;
  t.desc().parameter_block = kElements + 15;
  t.desc().gradient_block = kElements + 15;
  t.desc().isa = 1;
  t.parameter({"w", 0, kElements, 1, 0, 0, init, value, {kElements, 1, 1, 1}});
  return t.finish();
}

std::vector<double> filled(InitKind init, double value, int threads) {
  TableBuilder t("large");
  const ModelDesc& desc = large(t, init, value);
  const Fixture f(desc, options_of(threads));
  const double* p = static_cast<const double*>(tc_rt_parameter(f.model, "w"));
  return {p, p + desc.params[0].elements};
}

TEST(Initialisation, NormalHasItsMoments) {
  const std::vector<double> values = filled(InitNormal, 0.02, 3);
  double sum = 0, squares = 0, fourths = 0;
  for (double v : values) sum += v, squares += v * v, fourths += v * v * v * v;
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.02 * 4 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 0.0002);
  EXPECT_NEAR(fourths / n / std::pow(squares / n, 2), 3, 0.1);
  EXPECT_EQ(values, filled(InitNormal, 0.02, 1));
}

TEST(Initialisation, UniformFillsItsInterval) {
  const std::vector<double> values = filled(InitUniform, 0.5, 2);
  double sum = 0, least = 1, most = -1;
  for (double v : values) sum += v, least = std::min(least, v), most = std::max(most, v);
  EXPECT_NEAR(sum / static_cast<double>(values.size()), 0, 0.005);
  EXPECT_TRUE(least < -0.499 && least >= -0.5) << least;
  EXPECT_TRUE(most > 0.499 && most <= 0.5) << most;
}

TEST(Mathematics, AgreesWithTheLibm) {
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    EXPECT_NEAR(natural_log(x), std::log(x), 1e-13 * std::fabs(std::log(x)) + 1e-15);
  for (double x = -700; x < 700; x += 0.37) EXPECT_NEAR(exponential(x) / std::exp(x), 1, 1e-14) << x;
  EXPECT_EQ(exponential(-1e9), 0);
  for (double turns = 0; turns < 1; turns += 0.00137) {
    double s, c;
    sine_cosine_turns(turns, s, c);
    EXPECT_NEAR(s, std::sin(2 * M_PI * turns), 1e-14);
    EXPECT_NEAR(c, std::cos(2 * M_PI * turns), 1e-14);
  }
}

// -- options
// ------------------------------------------------------------------------------------------------------------------

std::string creation_error(const ModelDesc& desc, tc_options options, tc_status expected) {
  char text[200] = "";
  options.error = text;
  options.error_size = sizeof text;
  tc_model* model = nullptr;
  EXPECT_EQ(create_model(desc, &options, &model), expected);
  EXPECT_EQ(model, nullptr);
  return text;
}

TEST(Options, AreChecked) {
  EXPECT_EQ(creation_error(decoder(), options_of(-1), TC_E_ARGUMENT),
            "options.threads is -1, expected at least 0 (0: all cores)");
  tc_options options = options_of(1);
  options.release = [](void*, void*) {};
  EXPECT_EQ(creation_error(decoder(), options, TC_E_ARGUMENT),
            "options.alloc and options.release go together, but only one is given");
  options = options_of(1);
  options.memory_limit = 1000;
  EXPECT_NE(creation_error(decoder(), options, TC_E_MEMORY).find("memory_limit leaves"), std::string::npos);
  tc_options older{};  // a caller's struct that ends after `seed`
  older.size = offsetof(tc_options, threads);
  older.threads = -1;
  tc_model* model = nullptr;
  EXPECT_EQ(tc_rt_model_create(&older, &model), TC_OK);
  tc_rt_model_destroy(model);
  tc_options none{};
  EXPECT_EQ(tc_rt_model_create(&none, &model), TC_E_ARGUMENT);  // size 0
}

TEST(Options, ANewerStructIsFineWhileItsNewMembersAreZero) {
  struct {
    tc_options known;
    int64_t later;
  } options{};
  options.known.size = sizeof options;
  tc_model* model = nullptr;
  EXPECT_EQ(tc_rt_model_create(&options.known, &model), TC_OK);
  tc_rt_model_destroy(model);
  options.later = 1;
  EXPECT_EQ(tc_rt_model_create(&options.known, &model), TC_E_ARGUMENT);
}

TEST(Options, AProcessorWithoutWhatIsNeededIsRefused) {
  ModelDesc desc = decoder();
  desc.isa = 9;
  desc.target = "x86-64-v9";
  EXPECT_EQ(creation_error(desc, options_of(1), TC_E_CPU).substr(0, 56),
            "fake was compiled for x86-64-v9 (x86-64-v9), but this pr");
}

// -- memory
// -------------------------------------------------------------------------------------------------------------------

/// Hooks that count, and fail at one allocation.
struct Accountant {
  int allocations = 0, fail_at = -1;
  size_t bytes = 0, peak = 0;
  std::map<void*, size_t> alive;

  static void* alloc(void* user, size_t bytes, size_t align) {
    Accountant& a = *static_cast<Accountant*>(user);
    if (a.allocations++ == a.fail_at) return nullptr;
    void* memory = std::aligned_alloc(align, bytes);
    std::memset(memory, 0xa5, bytes);
    a.alive[memory] = bytes;
    a.bytes += bytes;
    a.peak = std::max(a.peak, a.bytes);
    return memory;
  }
  static void release(void* user, void* memory) {
    Accountant& a = *static_cast<Accountant*>(user);
    ASSERT_EQ(a.alive.count(memory), 1u);
    a.bytes -= a.alive[memory];
    a.alive.erase(memory);
    std::free(memory);
  }
  tc_options options() {
    tc_options o = options_of(2);
    o.alloc = alloc;
    o.release = release;
    o.user = this;
    return o;
  }
};

/// Creates, trains, decodes, generates; the first status that is not TC_OK.
tc_status live(tc_options options) {
  tc_model* model = nullptr;
  tc_session* session = nullptr;
  const int32_t tokens[4] = {1, 2, 3, 4}, targets[4] = {2, 3, 4, 5};
  const void* heads[1] = {targets};
  tc_batch batch = batch_of(1, 4);
  batch.tokens = tokens;
  float logits[4 * kVocab];
  void* outputs[1] = {logits};
  const tc_adamw settings = adamw_of(0.1);
  tc_sampling sampling{};
  sampling.size = sizeof sampling;
  sampling.max_new = 2;
  sampling.eos = -1;
  tc_status status = tc_rt_model_create(&options, &model);
  if (status == TC_OK) status = tc_rt_session_create(model, nullptr, &session);
  if (status == TC_OK) status = tc_rt_forward(session, &batch, 0, outputs);
  if (status == TC_OK) status = tc_rt_decode(session, &batch, logits);
  if (status == TC_OK) status = tc_rt_cache_reset(session, 3, 0, nullptr);
  if (status == TC_OK) {
    status = tc_rt_generate(
        session, &batch, &sampling, [](void*, int64_t, int32_t) { return 0; }, nullptr);
  }
  batch.targets = heads;
  if (status == TC_OK) status = tc_rt_train_step(session, &batch, &settings, nullptr);
  EXPECT_EQ(session && status != TC_OK, *tc_rt_message(session) != 0);
  tc_rt_session_destroy(session);
  tc_rt_model_destroy(model);
  return status;
}

TEST(Memory, AFailureAtAnyAllocationIsReportedAndLeaksNothing) {
  Accountant counting;
  ASSERT_EQ(live(counting.options()), TC_OK);
  EXPECT_TRUE(counting.alive.empty());
  ASSERT_GT(counting.allocations, 8);
  for (int i = 0; i < counting.allocations; ++i) {
    Accountant failing;
    failing.fail_at = i;
    EXPECT_EQ(live(failing.options()), TC_E_MEMORY) << i;
    EXPECT_TRUE(failing.alive.empty()) << i;
  }
}

TEST(Memory, IsWhatWasPublished) {
  Accountant accountant;
  const tc_options options = accountant.options();
  tc_model* model = nullptr;
  ASSERT_EQ(tc_rt_model_create(&options, &model), TC_OK);
  const size_t created =
      tc_rt_memory(TC_MEMORY_MODEL, 0, 0, 0, 0) + tc_rt_memory(TC_MEMORY_PARAMETERS, 0, 0, 0, 0);
  EXPECT_EQ(accountant.bytes, created);
  tc_session* session = nullptr;
  ASSERT_EQ(tc_rt_session_create(model, nullptr, &session), TC_OK);
  size_t expected = created + tc_rt_memory(TC_MEMORY_SESSION, 0, 0, 0, 0);
  EXPECT_EQ(accountant.bytes, expected);
  ASSERT_EQ(tc_rt_reserve(session, TC_ENTRY_TRAIN, 3, 5, 0), TC_OK);
  expected += tc_rt_memory(TC_MEMORY_GRADIENTS, 0, 0, 0, 0) +
              tc_rt_memory(TC_MEMORY_WORKSPACE + int{TC_ENTRY_TRAIN}, 3, 5, 0, 2);
  EXPECT_EQ(accountant.bytes, expected);
  ASSERT_EQ(tc_rt_reserve(session, TC_ENTRY_DECODE, 3, 1, 0), TC_OK);  // its workspace is the smaller one
  expected += tc_rt_memory(TC_MEMORY_CACHE, 3, kMaxSeq, 0, 0);
  EXPECT_EQ(accountant.bytes, expected);
  ASSERT_EQ(tc_rt_reserve(session, TC_ENTRY_STEP, 0, 0, 0), TC_OK);
  expected += tc_rt_memory(TC_MEMORY_MOMENTS, 0, 0, 0, 0);
  EXPECT_EQ(accountant.bytes, expected);
  EXPECT_EQ(tc_rt_reserve(session, 99, 1, 1, 1), TC_E_ARGUMENT);
  EXPECT_EQ(tc_rt_reserve(session, TC_ENTRY_VJP, 1, 1, 1), TC_E_STATE);
  EXPECT_EQ(tc_rt_reserve(session, TC_ENTRY_INFER, 1, 9, 1), TC_E_ARGUMENT);  // beyond max_seq
  EXPECT_EQ(accountant.bytes, expected);
  EXPECT_EQ(tc_rt_memory(TC_MEMORY_WORKSPACE + int{TC_ENTRY_INFER}, int64_t{1} << 40, int64_t{1} << 40, 0, 1),
            SIZE_MAX);
  // Sizes that no call takes are those of no memory.
  EXPECT_EQ(tc_rt_memory(TC_MEMORY_WORKSPACE + int{TC_ENTRY_INFER}, 1, kMaxSeq + 1, 0, 1), SIZE_MAX);
  EXPECT_EQ(tc_rt_workspace_bytes(TC_ENTRY_TRAIN, 1, kMaxSeq + 1, 0, 1), SIZE_MAX);
  EXPECT_EQ(tc_rt_memory(TC_MEMORY_CACHE, 1, kMaxSeq + 1, 0, 1), SIZE_MAX);
  EXPECT_EQ(tc_rt_decode_workspace_bytes(1, 1, 0, kMaxSeq + 1, 1), SIZE_MAX);
  EXPECT_NE(tc_rt_workspace_bytes(TC_ENTRY_TRAIN, 1, kMaxSeq, 0, 1), SIZE_MAX);
  tc_rt_session_destroy(session);
  tc_rt_model_destroy(model);
  EXPECT_TRUE(accountant.alive.empty());
}

TEST(Memory, TheSessionsLimitHolds) {
  const Fixture f(decoder());
  tc_options options = options_of(1);
  options.memory_limit = tc_rt_memory(TC_MEMORY_SESSION, 0, 0, 0, 1) + 4096;
  tc_session* session = nullptr;
  ASSERT_EQ(tc_rt_session_create(f.model, &options, &session), TC_OK);
  EXPECT_EQ(tc_rt_reserve(session, TC_ENTRY_INFER, 1, 8, 0), TC_OK);
  EXPECT_EQ(tc_rt_reserve(session, TC_ENTRY_INFER, 1000, 8, 0), TC_E_MEMORY);
  EXPECT_NE(std::strstr(tc_rt_message(session), "memory_limit"), nullptr);
  EXPECT_EQ(tc_rt_reserve(session, TC_ENTRY_INFER, 1, 8, 0), TC_OK);
  tc_rt_session_destroy(session);
}

// -- what the library tells
// -----------------------------------------------------------------------------------------------------

TEST(Table, IsTheSameForEveryoneAndForOneBuild) {
  const tc_api* api = tc_rt_api(0);
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(tc_rt_api(42), api);
  EXPECT_EQ(tc_rt_api(43), nullptr);
  EXPECT_EQ(api->abi, 1u);
  EXPECT_STREQ(api->name, "fake");
  EXPECT_EQ(api->train_step, tc_rt_train_step);
  EXPECT_EQ(api->threads, tc_rt_threads);
  tc_info info{};
  info.size = sizeof info;
  ASSERT_EQ(api->info(&info), TC_OK);
  EXPECT_EQ(info.parameter_count, 3);
  EXPECT_EQ(info.inputs,
            static_cast<uint32_t>(TC_INPUT_TOKENS | TC_INPUT_MASK | TC_INPUT_LENGTHS | TC_INPUT_TARGETS));
  EXPECT_EQ(info.entries & (1u << TC_ENTRY_VJP), 0u);
  EXPECT_NE(info.entries & (1u << TC_ENTRY_DECODE), 0u);
  tc_parameter parameter{};
  parameter.size = sizeof parameter;
  ASSERT_EQ(api->parameter_info(2, &parameter), TC_OK);
  EXPECT_STREQ(parameter.name, "frozen");
  EXPECT_EQ(parameter.offset, 32);
  EXPECT_EQ(api->parameter_info(3, &parameter), TC_E_ARGUMENT);
}

TEST(Table, ParametersAndGradientsByName) {
  const Fixture f(decoder());
  EXPECT_EQ(tc_rt_parameter(f.model, "bias"), f.parameters() + 16);
  EXPECT_EQ(tc_rt_parameter(f.model, "no such"), nullptr);
  EXPECT_EQ(tc_rt_gradient(f.model, "bias"), nullptr) << "nothing trained yet";
  ASSERT_EQ(tc_rt_allocate(f.model, 1, 1), TC_OK);
  EXPECT_EQ(tc_rt_gradient(f.model, "bias"), f.gradients() + 16);
  EXPECT_EQ(tc_rt_gradient(f.model, "frozen"), nullptr);
  EXPECT_EQ(f.gradients()[16], 0.0f);
  EXPECT_EQ(static_cast<float*>(tc_rt_moment(f.model, 2, "bias")),
            static_cast<float*>(tc_rt_block(f.model, TC_BLOCK_MOMENT2)) + 16);
}

}  // namespace
}  // namespace tc::test
