// A pass changes how a module computes, not what: every optional pass on and off, -O0 and -O2, by the
// interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Entry;
using ir::Module;
using ir::Phase;

const std::vector<Model>& zoo() {
  static const std::vector<Model> models = {
      {},
      {.placement = "sandwich",
       .norm = "rmsnorm",
       .activation = "swiglu",
       .position = "rope",
       .d_model = 8,
       .heads = 4,
       .kv_heads = 2,
       .tie = false,
       .mask = true,
       .bias = false},
      {.kind = "encoder",
       .head = "classifier",
       .placement = "post",
       .types = 2,
       .mask = true,
       .embedding_norm = true},
      {.kind = "encoder",
       .head = "none",
       .position = "sinusoidal",
       .vocab = 0,
       .residual_scale = 0.5,
       .mask = true},
      {.kind = "encoder-decoder",
       .placement = "post",
       .activation = "geglu",
       .embedding_scale = 2.0,
       .smoothing = 0.1,
       .mask = true,
       .head_bias = true},
      {.kind = "encoder-decoder", .head = "none", .position = "none", .vocab = 0, .memory_input = true},
      {.activation = "swiglu", .experts = 3, .mask = true},
  };
  return models;
}

/// Every output of every entry, from the same random inputs.
std::map<std::string, std::vector<double>> results(const Module& module) {
  std::map<std::string, std::vector<double>> found;
  for (const Entry& entry : module.entries) {
    ir::Interpreter interpreter = random_inputs(module, entry, small_point());
    if (entry.name == "step")
      interpreter.inputs["hyper"] = ir::Tensor(ir::DType::F64, {8}, {.1, .9, .95, 1e-8, .1, 1, 0, 0});
    interpreter.run(entry.graph);
    interpreter.commit();
    for (const ir::Output& output : entry.graph.outputs) {
      if (!output.name.starts_with("grads:"))
        found[entry.name + " " + output.name] = interpreter.value(output.value).data;
    }
    found[entry.name + " gradients"] = interpreter.block(ir::Space::Grads);
  }
  return found;
}

void expect_equal(const Module& a, const Module& b) {
  const auto left = results(a), right = results(b);
  ASSERT_EQ(left.size(), right.size());
  for (const auto& [name, values] : left) {
    ASSERT_TRUE(right.contains(name)) << name;
    const std::vector<double>& others = right.at(name);
    ASSERT_EQ(values.size(), others.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], others[i], 1e-10 * (1 + std::abs(values[i]))) << name << " " << i;
    }
  }
}

TEST(Equality, EachOptionalPassOff) {
  std::set<std::string> optional;
  for (const Pass& pass : all_passes()) {
    if (!pass.mandatory) optional.emplace(pass.name);
  }
  EXPECT_GE(optional.size(), 3u);
  for (const Model& model : zoo()) {
    SCOPED_TRACE(model.kind + " " + model.head);
    const Module all = compiled(model, Phase::Fused);
    for (const std::string& name : optional) {
      SCOPED_TRACE(name);
      expect_equal(all, compiled(model, Phase::Fused, {.disabled = {name}}));
    }
  }
}

TEST(Equality, NothingOptional) {
  for (const Model& model : zoo()) {
    SCOPED_TRACE(model.kind + " " + model.head);
    expect_equal(compiled(model, Phase::Fused), compiled(model, Phase::Fused, {.optimisation = 0}));
  }
}

/// The optimised graphs of a second run are those of the first: nothing is left to find.
TEST(Equality, PassesSettle) {
  for (const Model& model : zoo()) {
    Module module = compiled(model, Phase::Joint);
    const std::string once = ir::print(module);
    module.phase = Phase::Joint;
    for (const Pass& pass : all_passes()) {
      if (pass.before != Phase::Joint || pass.after != Phase::Joint) continue;
      PassOptions options;
      ir::Diagnostics diagnostics;
      PassContext context{options, diagnostics};
      EXPECT_FALSE(pass.run(module, context)) << pass.name;
    }
    EXPECT_EQ(ir::print(module), once);
  }
}

}  // namespace
}  // namespace tfc::passes::testing
