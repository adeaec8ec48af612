// Gradients of whole models, as the graphs of train and vjp compute them, against finite differences of the
// forward graphs. All by the interpreter: this is about derivation, not about kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Entry;
using ir::Interpreter;
using ir::Module;
using ir::Phase;
using ir::Space;

/// What is differentiated: the mean loss, or sum(output * grad_output).
double objective(Interpreter& interpreter, const Module& module, bool loss) {
  const Entry* entry = module.entry(loss ? "loss" : "infer");
  interpreter.run(entry->graph);
  if (loss) {
    const double count = interpreter.output("loss.count")[0];
    return count > 0 ? interpreter.output("loss.sum")[0] / count : 0.0;
  }
  const ir::Tensor& output = interpreter.output("output");
  const ir::Tensor& upstream = interpreter.inputs.at("grad_output");
  double sum = 0;
  for (int64_t i = 0; i < output.elements(); ++i) sum += output[i] * upstream[i];
  return sum;
}

/// d objective / d number, where `number` is among the interpreter's parameters or inputs.
double slope(Interpreter& interpreter, const Module& module, bool loss, double& number) {
  constexpr double h = 1e-5;
  const double kept = number;
  number = kept + h;
  const double above = objective(interpreter, module, loss);
  number = kept - h;
  const double below = objective(interpreter, module, loss);
  number = kept;
  return (above - below) / (2 * h);
}

/// Every third number of each parameter, and every float input.
void expect_true_gradients(const Model& model, const std::string& entry_name) {
  SCOPED_TRACE(model.kind + " " + model.head + " " + model.placement + " " + entry_name);
  const Module module = compiled(model, Phase::Joint);
  const Entry* entry = module.entry(entry_name);
  ASSERT_NE(entry, nullptr);
  const bool loss = entry_name == "train";
  Interpreter interpreter = random_inputs(module, *entry, small_point());
  interpreter.run(entry->graph);
  std::map<std::string, ir::Tensor> input_gradients;
  for (const ir::Output& output : entry->graph.outputs) {
    if (output.name.starts_with("grad_"))
      input_gradients[output.name.substr(5)] = interpreter.value(output.value);
  }
  interpreter.commit();
  int checked = 0;
  for (const ir::Parameter& parameter : module.parameters) {
    for (int64_t i = parameter.offset; i < parameter.offset + parameter.elements(); i += 3, ++checked) {
      const double found = interpreter.block(Space::Grads)[static_cast<size_t>(i)];
      const double expected =
          slope(interpreter, module, loss, interpreter.block(Space::Params)[static_cast<size_t>(i)]);
      EXPECT_NEAR(found, expected, 1e-6 * (1 + std::abs(expected)))
          << parameter.name << " " << i - parameter.offset;
    }
  }
  for (const auto& [name, gradient] : input_gradients) {
    for (int64_t i = 0; i < gradient.elements(); ++i, ++checked) {
      const double expected = slope(interpreter, module, loss, interpreter.inputs.at(name)[i]);
      EXPECT_NEAR(gradient[i], expected, 1e-6 * (1 + std::abs(expected))) << name << " " << i;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Gradients, DecoderTiedLearned) {
  expect_true_gradients({}, "train");
  expect_true_gradients({}, "vjp");
}

TEST(Gradients, DecoderLlamaStyleMasked) {
  const Model model = llama_like(false);
  expect_true_gradients(model, "train");
  expect_true_gradients(model, "vjp");
}

TEST(Gradients, DecoderSandwichInterleaved) {
  expect_true_gradients({.placement = "sandwich",
                         .activation = "gelu_tanh",
                         .position = "rope",
                         .rope_style = "interleaved",
                         .kv_heads = 1,
                         .residual_scale = 0.5,
                         .smoothing = 0.1,
                         .head_bias = true},
                        "train");
}

TEST(Gradients, ExpertsAndTheirBalance) {
  const Model model{.activation = "geglu", .experts = 3, .mask = true};
  expect_true_gradients(model, "train");
  expect_true_gradients(model, "vjp");
}

TEST(Gradients, EncoderWithTypesAndClassifier) {
  for (const char* pool : {"first", "mean", "last"}) {
    const Model model{.kind = "encoder",
                      .head = "classifier",
                      .placement = "post",
                      .activation = "geglu",
                      .pool = pool,
                      .types = 2,
                      .mask = true,
                      .embedding_norm = true,
                      .head_bias = true};
    expect_true_gradients(model, "train");
    expect_true_gradients(model, "vjp");
  }
}

TEST(Gradients, EncoderOfFloats) {
  expect_true_gradients({.kind = "encoder",
                         .head = "none",
                         .activation = "silu",
                         .position = "sinusoidal",
                         .vocab = 0,
                         .mask = true},
                        "vjp");
}

TEST(Gradients, EncoderDecoder) {
  const Model model{.kind = "encoder-decoder",
                    .placement = "post",
                    .activation = "reglu",
                    .position = "sinusoidal",
                    .embedding_scale = 2.5,
                    .mask = true};
  expect_true_gradients(model, "train");
  expect_true_gradients(model, "vjp");
}

TEST(Gradients, DecoderOfFloatsWithMemory) {
  expect_true_gradients({.kind = "encoder-decoder",
                         .head = "none",
                         .placement = "sandwich",
                         .position = "none",
                         .vocab = 0,
                         .mask = true,
                         .memory_input = true},
                        "vjp");
}

TEST(Gradients, AccumulateOntoWhatIsThere) {
  const Module module = compiled({}, Phase::Joint);
  const Entry* train = module.entry("train");
  Interpreter interpreter = random_inputs(module, *train, small_point());
  interpreter.inputs["mean"][0] = 0;
  interpreter.run(train->graph);
  interpreter.commit();
  const std::vector<double> once = interpreter.block(Space::Grads);
  interpreter.run(train->graph);
  interpreter.commit();
  for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(interpreter.block(Space::Grads)[i], 2 * once[i], 1e-9);
}

TEST(Gradients, MaskedPositionsAreNeverRead) {
  const Model model{.kind = "encoder", .head = "none", .position = "sinusoidal", .vocab = 0, .mask = true};
  const Module module = compiled(model, Phase::Joint);
  const Entry* vjp = module.entry("vjp");
  Interpreter clean = random_inputs(module, *vjp, small_point());
  Interpreter poisoned = random_inputs(module, *vjp, small_point());
  const ir::Tensor& mask = clean.inputs.at("mask");
  for (int64_t i = 0; i < mask.elements(); ++i) {
    if (mask[i] != 0) continue;
    for (int64_t d = 0; d < model.d_model; ++d) {
      poisoned.inputs["x"].row(i)[d] = std::nan("");
      poisoned.inputs["grad_output"].row(i)[d] = std::nan("");
    }
  }
  clean.run(vjp->graph);
  poisoned.run(vjp->graph);
  for (const ir::Output& output : vjp->graph.outputs) {
    EXPECT_EQ(clean.value(output.value).data, poisoned.value(output.value).data) << output.name;
  }
  const ir::Tensor& dx = clean.output("grad_x");
  for (int64_t i = 0; i < mask.elements(); ++i) {
    if (mask[i] == 0) {
      EXPECT_EQ(dx.row(i)[0], 0.0);
    }
  }
}

}  // namespace
}  // namespace tfc::passes::testing
