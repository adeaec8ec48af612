// Non-finite values are neither made nor hidden; denormals are flushed in float32 and kept in double; the
// host's floating-point state neither matters nor changes.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <limits>

#include "models/descriptions.h"
#include "models/rows.h"

namespace tfc::models {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool any_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
}

const char* const kFloatDecoder = R"(
[model]
kind = "decoder"
d_model = 17
layers = 2
heads = 1
[ffn]
activation = "ACTIVATION"
[norm]
placement = "PLACEMENT"
)";

std::string with(std::string text, const std::string& activation, const std::string& placement) {
  text.replace(text.find("ACTIVATION"), 10, activation);
  text.replace(text.find("PLACEMENT"), 9, placement);
  return text;
}

class SpecialValues : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

/// A NaN or an infinity at one token: that token and those that see it answer NaN, all others as if it were
/// not there.
TEST_P(SpecialValues, ComeOutWhereTheyAreSeen) {
  const auto& [activation, placement] = GetParam();
  const Compiled compiled = compile(with(kFloatDecoder, activation, placement));
  Session session(compiled);
  constexpr int64_t kB = 3, kT = 9, kRow = 1, kToken = 4;
  const Call clean = random_call(session, kB, kT, 0, 7, false);
  const Bytes expected = session.forward(clean);
  for (const double special : {kNaN, kInfinity, -kInfinity}) {
    SCOPED_TRACE(special);
    tools::Inputs inputs = clean.inputs;
    inputs["x"][(kRow * kT + kToken) * 17 + 3] = special;
    const Call call(session, inputs, clean.point);
    const Bytes output = session.forward(call);
    for (int64_t b = 0; b < kB; ++b) {
      const int64_t before = b == kRow ? kToken : kT;
      EXPECT_TRUE(tokens_of(output, kB, b, before, kT) == tokens_of(expected, kB, b, before, kT))
          << "row " << b;
    }
    const std::vector<double> values = numbers(session, tokens_of(output, kB, kRow, kT, kT));
    for (int64_t t = kToken; t < kT; ++t) {
      const std::vector<double> token(values.begin() + t * 17, values.begin() + (t + 1) * 17);
      EXPECT_TRUE(any_nan(token)) << "token " << t;
    }
    const Results gradients = session.vjp(call, clean.batch.grad_output);
    EXPECT_TRUE(any_nan(numbers(session, session.block(TC_BLOCK_GRADIENTS))));
    EXPECT_TRUE(any_nan(numbers(session, tokens_of(gradients.at("vjp grad_x"), kB, kRow, kT, kT))));
    EXPECT_TRUE(all_finite(numbers(session, tokens_of(gradients.at("vjp grad_x"), kB, 0, kT, kT))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Activations, SpecialValues,
    testing::Combine(testing::Values("relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "reglu"),
                     testing::Values("pre", "post")),
    [](const auto& info) { return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param); });

/// A NaN in a parameter reaches the loss, every gradient's norm and, through the step, the parameters:
/// nothing on the way takes it for a number.
TEST(SpecialParameters, ReachTheLossAndTheStep) {
  for (const char* name : {"gpt", "llama", "transformer", "bert"}) {
    SCOPED_TRACE(name);
    const Compiled compiled = compile(case_named(name).text, {.optimisation = name[0] == 'g' ? 2 : 0});
    Session session(compiled);
    const Call call = random_call(session, 2, 5, 5);
    for (const char* parameter : {"tok_emb.weight", "layers.0.attn.q.weight", "layers.1.ffn.down.weight",
                                  "encoder.layers.0.attn.k.weight", "decoder.layers.1.norm3.weight"}) {
      session.start_over();
      auto* data = static_cast<float*>(session.api.parameter(session.model, parameter));
      if (!data) continue;
      SCOPED_TRACE(parameter);
      // Every row, since not every token occurs.
      const bool table = std::string(parameter) == "tok_emb.weight";
      for (int64_t row = 0; row < (table ? session.info.vocab : 1); ++row)
        data[row * session.info.d_model] = NAN;
      EXPECT_TRUE(std::isnan(session.loss(call)));
      EXPECT_TRUE(std::isnan(session.backward(call)));
      EXPECT_TRUE(any_nan(numbers(session, session.block(TC_BLOCK_GRADIENTS))));
      EXPECT_TRUE(std::isnan(session.step()));
    }
  }
}

/// Logits far apart: exponentials overflow and vanish, and the loss is still right.
TEST(LargeValues, DoNotOverflow) {
  const Compiled compiled = compile(case_named("gpt").text);
  Session session(compiled);
  const Call call = random_call(session, 2, 9, 0);
  auto* gains = static_cast<float*>(session.api.parameter(session.model, "final_norm.weight"));
  auto* queries = static_cast<float*>(session.api.parameter(session.model, "layers.0.attn.q.weight"));
  for (int i = 0; i < 33; ++i) gains[i] *= 1e4F;
  for (int i = 0; i < 33 * 33; ++i) queries[i] *= 1e4F;
  EXPECT_TRUE(all_finite(numbers(session, session.forward(call))));
  EXPECT_TRUE(all_finite(numbers(session, session.logprobs(call))));
  EXPECT_TRUE(std::isfinite(session.backward(call)));
  EXPECT_TRUE(all_finite(numbers(session, session.block(TC_BLOCK_GRADIENTS))));
}

// MXCSR: flags, masks of exceptions, rounding, flush to zero, denormals are zero.
constexpr unsigned kDefault = 0x1f80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
constexpr unsigned kDown = 0x2000, kUp = 0x4000, kTowardsZero = 0x6000, kInexactSeen = 0x0020;

class HostState {
 public:
  explicit HostState(unsigned state) : before_(_mm_getcsr()) { _mm_setcsr(state); }
  ~HostState() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};

TEST(HostFloatingPoint, NeitherMattersNorChanges) {
  for (const ir::DType precision : {ir::DType::F32, ir::DType::F64}) {
    const Compiled compiled = compile(case_named("transformer").text, {.precision = precision});
    Session session(compiled, with_threads(2));
    const Call call = random_call(session, 4, 15, 17);
    const Results expected = session.everything(call, call.batch.grad_output);
    session.start_over();
    const double expected_mean = session.loss(call);
    for (const unsigned state : {kDefault, kDefault | kFlushToZero, kDefault | kDenormalsAreZero,
                                 kDefault | kFlushToZero | kDenormalsAreZero, kDefault | kDown,
                                 kDefault | kUp, kDefault | kTowardsZero, kDefault | kInexactSeen}) {
      SCOPED_TRACE(state);
      Results results;
      unsigned after = 0;
      {
        session.start_over();
        const HostState host(state);
        const double mean = session.loss(call);
        results = {{"infer", session.forward(call)},
                   {"last", session.forward(call, 1)},
                   {"logprobs", session.logprobs(call)}};
        session.vjp(call, call.batch.grad_output);
        results["vjp gradients"] = session.block(TC_BLOCK_GRADIENTS);
        session.backward(call);
        results["train gradients"] = session.block(TC_BLOCK_GRADIENTS);
        session.step();
        results["step parameters"] = session.block(TC_BLOCK_PARAMETERS);
        session.api.zero_grad(session.session);
        after = _mm_getcsr();
        EXPECT_EQ(mean, expected_mean);
      }
      EXPECT_EQ(after, state);
      for (const auto& [name, bytes] : results) EXPECT_TRUE(bytes == expected.at(name)) << name;
    }
  }
}

/// Exceptions that the host has unmasked must not stop it inside: what overflows or is no number is a value
/// like any other, in arrays and in settings.
TEST(HostFloatingPoint, TrapsOfTheHostDoNotFireInside) {
  const Compiled compiled = compile(case_named("gpt").text, {.optimisation = 0});
  Session session(compiled);
  const Call call = random_call(session, 3, 5, 0);
  auto* gains = static_cast<float*>(session.api.parameter(session.model, "final_norm.weight"));
  gains[1] = 3e38F;
  gains[2] = NAN;
  const Bytes expected = session.forward(call);
  const double expected_mean = session.loss(call);
  Bytes output;
  double mean = 0, trained = 0;
  tc_adamw settings = usual_settings();
  settings.clip = kNaN;
  tc_sampling sampling{};
  sampling.size = sizeof sampling;
  sampling.temperature = NAN;
  tc_state state{};
  state.size = sizeof state;
  state.divisor = kNaN;
  tc_status status = TC_OK, sampling_status = TC_OK, state_status = TC_OK;
  {
    const HostState host(0);  // every exception is a signal
    output = session.forward(call);
    mean = session.loss(call);
    trained = session.backward(call);
    session.step();
    status = session.api.step(session.session, &settings, nullptr);
    sampling_status = session.api.generate(session.session, &call.get(), &sampling, nullptr, nullptr);
    state_status = session.api.set_state(session.model, &state);
  }
  EXPECT_TRUE(output == expected);
  EXPECT_TRUE(std::isnan(mean) && std::isnan(expected_mean) && std::isnan(trained));
  EXPECT_EQ(status, TC_E_ARGUMENT);
  EXPECT_EQ(sampling_status, TC_E_ARGUMENT);
  EXPECT_EQ(state_status, TC_E_ARGUMENT);
}

/// The residual stream is nothing but the input where every other path is zero.
TEST(Denormals, AreFlushedInFloat32AndKeptInDouble) {
  for (const ir::DType precision : {ir::DType::F32, ir::DType::F64}) {
    const Compiled compiled = compile(with(kFloatDecoder, "gelu", "pre"), {.precision = precision});
    Session session(compiled);
    const Call call = random_call(session, 2, 5, 0, 7, false);
    tools::Inputs tiny = call.inputs, zero = call.inputs;
    for (double& value : tiny["x"].data) value *= precision == ir::DType::F32 ? 1e-41 : 1e-310;
    for (double& value : zero["x"].data) value = 0;
    const Bytes of_tiny = session.forward(Call(session, tiny, call.point));
    const Bytes of_zero = session.forward(Call(session, zero, call.point));
    EXPECT_TRUE(all_finite(numbers(session, of_tiny)));
    EXPECT_TRUE(precision == ir::DType::F64 || of_tiny == of_zero);

    // A gradient of denormals is one of zeros in float32: the norm of it is 0, in double it is not.
    tools::Inputs small = call.inputs;
    for (double& value : small["grad_output"].data) value *= precision == ir::DType::F32 ? 1e-41 : 1e-310;
    const Call with_small(session, small, call.point);
    session.vjp(with_small, with_small.batch.grad_output);
    const std::vector<double> gradients = numbers(session, session.block(TC_BLOCK_GRADIENTS));
    const bool nothing = std::all_of(gradients.begin(), gradients.end(), [](double v) { return v == 0; });
    EXPECT_EQ(nothing, precision == ir::DType::F32);
  }
}

}  // namespace
}  // namespace tfc::models
