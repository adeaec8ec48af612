// A bias of all keys moves every score of a query alike: no gradient. A rotation by position in between makes
// one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

/// Greatest magnitude in the gradient of a parameter, in the train entry of the whole pipeline.
double greatest_gradient(const Model& model, const std::string& name) {
  const ir::Module module = compiled(model, ir::Phase::Joint);
  const ir::Entry& entry = *module.entry("train");
  ir::Interpreter interpreter = random_inputs(module, entry, small_point());
  std::vector<double>& gradients = interpreter.block(ir::Space::Grads);
  std::fill(gradients.begin(), gradients.end(), 0.0);
  interpreter.run(entry.graph);
  interpreter.commit();
  double greatest = 0;
  for (double g : interpreter.read(ir::Space::Grads, name)) greatest = std::max(greatest, std::fabs(g));
  return greatest;
}

TEST(CancelKeyBias, IsExactlyZero) {
  for (const char* kind : {"decoder", "encoder"}) {
    Model model;
    model.kind = kind;
    model.mask = true;
    EXPECT_EQ(greatest_gradient(model, "layers.0.attn.k.bias"), 0) << kind;
    EXPECT_GT(greatest_gradient(model, "layers.0.attn.q.bias"), 1e-6) << kind;
    EXPECT_GT(greatest_gradient(model, "layers.0.attn.v.bias"), 1e-6) << kind;
  }
}

TEST(CancelKeyBias, CrossAttentionToo) {
  Model model;
  model.kind = "encoder-decoder";
  EXPECT_EQ(greatest_gradient(model, "decoder.layers.1.cross.k.bias"), 0);
  EXPECT_GT(greatest_gradient(model, "decoder.layers.1.cross.v.bias"), 1e-6);
}

/// The key gradients of three attentions, added up before they reach the bias.
TEST(CancelKeyBias, SharedKeysOfTheMemoryToo) {
  const Model model{.kind = "encoder-decoder", .layers = 3, .shared = "blocks.one"};
  EXPECT_EQ(greatest_gradient(model, "decoder.blocks.one.cross.k.bias"), 0);
  EXPECT_GT(greatest_gradient(model, "decoder.blocks.one.cross.v.bias"), 1e-6);
}

TEST(CancelKeyBias, NotBehindARotation) {
  Model model;
  model.position = "rope";
  EXPECT_GT(greatest_gradient(model, "layers.0.attn.k.bias"), 1e-9);
}

}  // namespace
}  // namespace tfc::passes::testing
