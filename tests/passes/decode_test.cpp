// Decoding with a cache gives what the whole sequence gives, in any split, rows of different lengths
// included.
#include <gtest/gtest.h>

#include "passes/models.h"
#include "passes/plan/cache_layout.h"

namespace tfc::passes::testing {
namespace {

using ir::DType;
using ir::Entry;
using ir::Interpreter;
using ir::Module;
using ir::Phase;
using ir::Symbol;
using ir::Tensor;

constexpr int64_t kBatch = 2, kTokens = 7, kMemory = 3, kCapacity = 9;

/// Tokens [from, to) of every row of an input [B,T] or [B,T,D].
Tensor columns(const Tensor& whole, int64_t from, int64_t to) {
  const int64_t width = whole.rank() == 3 ? whole.shape[2] : 1;
  std::vector<int64_t> shape = whole.shape;
  shape[1] = to - from;
  Tensor part(whole.dtype, shape);
  for (int64_t b = 0; b < shape[0]; ++b) {
    for (int64_t i = 0; i < (to - from) * width; ++i) {
      part[b * (to - from) * width + i] = whole[(b * whole.shape[1] + from) * width + i];
    }
  }
  return part;
}

void expect_same_as_whole(const Model& model, const std::vector<int64_t>& split) {
  SCOPED_TRACE(model.kind + " " + model.position);
  const Module module = compiled(model, Phase::Joint);
  Interpreter whole =
      random_inputs(module, *module.entry("infer"), small_point(kBatch, kTokens, kMemory, kCapacity));
  const std::string own = model.kind == "decoder" ? (model.vocab > 0 ? "tokens" : "x") : "tgt";
  if (model.mask) {  // row 0 is short: padded on the right
    for (int64_t i = 0; i < kBatch * kTokens; ++i)
      whole.inputs["mask"][i] = i == kTokens - 1 || i == kTokens - 2 ? 0 : 1;
  }
  whole.run(module.entry("infer")->graph);
  const Tensor expected = whole.output("output");

  Interpreter cached = whole;
  if (const Entry* encode = module.entry("encode")) {
    cached.run(encode->graph);
    cached.commit();
  }
  cached.inputs["offsets"] = Tensor(DType::I32, {kBatch});
  int64_t from = 0;
  for (const int64_t count : split) {
    cached.point[Symbol::T] = count;
    cached.inputs[own] = columns(whole.inputs[own], from, from + count);
    if (model.mask) cached.inputs["mask"] = columns(whole.inputs["mask"], from, from + count);
    cached.run(module.entry("decode")->graph);
    const Tensor output = cached.output("output"), wanted = columns(expected, from, from + count);
    cached.commit();
    for (int64_t i = 0; i < output.elements(); ++i)
      EXPECT_NEAR(output[i], wanted[i], 1e-12) << from << " " << i;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t t = 0; t < count; ++t) {
        cached.inputs["offsets"][b] += model.mask ? cached.inputs["mask"][b * count + t] : 1;
      }
    }
    from += count;
  }
  EXPECT_EQ(from, kTokens);
}

TEST(Decode, TokenByTokenAndInSplits) {
  for (const char* position : {"learned", "sinusoidal", "rope", "none"}) {
    for (const std::vector<int64_t>& split :
         {std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1}, {3, 4}, {7}, {5, 1, 1}}) {
      expect_same_as_whole({.position = position}, split);
    }
  }
}

TEST(Decode, RowsOfDifferentLengths) {
  expect_same_as_whole(llama_like(), {3, 4});
}

TEST(Decode, EncoderDecoder) {
  expect_same_as_whole({.kind = "encoder-decoder", .position = "sinusoidal", .mask = true}, {2, 1, 4});
  expect_same_as_whole({.kind = "encoder-decoder", .placement = "post"}, {1, 6});
}

TEST(Decode, Floats) {
  expect_same_as_whole({.head = "none", .vocab = 0}, {4, 3});
  expect_same_as_whole(
      {.kind = "encoder-decoder", .head = "none", .position = "none", .vocab = 0, .memory_input = true},
      {4, 3});
}

TEST(Decode, CacheLayout) {
  const Module module = compiled({.kind = "encoder-decoder", .layers = 1}, Phase::Joint);
  const CacheLayout layout = cache_layout(module);
  ASSERT_EQ(layout.tensors.size(), 4u);
  EXPECT_EQ(layout.tensors[0].name, "decoder.layers.0.attn.k");
  EXPECT_FALSE(layout.tensors[0].cross);
  EXPECT_EQ(layout.tensors[2].name, "decoder.layers.0.cross.k");
  EXPECT_TRUE(layout.tensors[2].cross);
  EXPECT_EQ(layout.tensors[2].bytes, ir::Dim(48) * ir::Dim(Symbol::B) * ir::Dim(Symbol::S));
  EXPECT_EQ(layout.tensors[1].offset, align_up(layout.tensors[0].bytes, 64));
  EXPECT_EQ(layout.find("nothing"), nullptr);
}

}  // namespace
}  // namespace tfc::passes::testing
