// Text in, text out: golden graphs after each pass, and every phase of several models printed, read back and
// printed again. UPDATE_GOLDEN=1 rewrites the golden files; review is the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "passes/models.h"

namespace tfc::passes::testing {
namespace {

using ir::Module;
using ir::Phase;

std::shared_ptr<ir::SourceFile> source(std::string text) {
  auto file = std::make_shared<ir::SourceFile>();
  file->name = "module.tcir";
  file->text = std::move(text);
  return file;
}

TEST(Text, EveryPhaseReadsBack) {
  const std::vector<Model> models = {
      {},
      llama_like(),
      {.kind = "encoder", .head = "classifier", .placement = "auto", .types = 2, .embedding_norm = true},
      {.kind = "encoder",
       .head = "none",
       .placement = "post",
       .position = "sinusoidal",
       .vocab = 0,
       .mask = true},
      {.kind = "encoder-decoder", .placement = "sandwich", .mask = true}};
  for (const Model& model : models) {
    for (Phase phase : {Phase::Blocks, Phase::Ops, Phase::Joint, Phase::Fused, Phase::Planned}) {
      SCOPED_TRACE(model.kind + " " + std::string(ir::phase_name(phase)));
      const std::string text = ir::print(compiled(model, phase));
      ir::Diagnostics diagnostics;
      const std::optional<Module> read = ir::read_module(source(text), diagnostics);
      ASSERT_TRUE(read.has_value()) << diagnostics.text();
      EXPECT_EQ(ir::print(*read), text);
    }
  }
}

/// Compilation goes on from a dump of blocks or joint to the same plan.
TEST(Text, CompilationGoesOnFromDumps) {
  const Model model{.kind = "encoder-decoder", .mask = true};
  const std::string direct = ir::print(compiled(model, Phase::Planned));
  for (Phase phase : {Phase::Blocks, Phase::Joint, Phase::Fused}) {
    SCOPED_TRACE(ir::phase_name(phase));
    ir::Diagnostics diagnostics;
    std::optional<Module> read = ir::read_module(source(ir::print(compiled(model, phase))), diagnostics);
    ASSERT_TRUE(read.has_value()) << diagnostics.text();
    run_to(*read, Phase::Planned);
    EXPECT_EQ(ir::print(*read), direct);
  }
}

void compare_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TFC_SOURCE_DIR) + "/tests/passes/golden/" + name + ".tcir";
  if (std::getenv("UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(golden.str(), text) << path << " (UPDATE_GOLDEN=1 rewrites it)";
}

/// The module as the passes up to and including `last` leave it.
std::string after(const Model& model, std::string_view last) {
  return ir::print(compiled(model, Phase::Planned, {.stop_after = std::string(last)}));
}

const Model kSmall{.activation = "swiglu", .layers = 1};

TEST(Text, Blocks) { compare_golden("blocks", ir::print(blocks(kSmall))); }
TEST(Text, PlaceNorms) { compare_golden("place-norms", after(kSmall, "place-norms")); }
TEST(Text, Expand) { compare_golden("expand", after(kSmall, "expand")); }
TEST(Text, FuseQkv) { compare_golden("fuse-qkv", after(kSmall, "fuse-qkv")); }
TEST(Text, FuseGateUp) { compare_golden("fuse-gate-up", after(kSmall, "fuse-gate-up")); }

std::string entry_after(const Model& model, const char* entry, std::string_view last) {
  const Module module = compiled(model, Phase::Planned, {.stop_after = std::string(last)});
  return ir::print(*module.entry(entry), module);
}

const Model kTiny{.head = "none",
                  .norm = "rmsnorm",
                  .activation = "relu",
                  .position = "none",
                  .layers = 1,
                  .vocab = 0,
                  .bias = false};

TEST(Text, Decode) { compare_golden("decode", entry_after(kSmall, "decode", "derive-entries")); }
TEST(Text, Step) { compare_golden("step", entry_after(kSmall, "step", "derive-entries")); }
TEST(Text, Vjp) { compare_golden("vjp", entry_after(kTiny, "vjp", "differentiate")); }
TEST(Text, FusedVjp) { compare_golden("vjp-fused", entry_after(kTiny, "vjp", "accumulate-in-place")); }

}  // namespace
}  // namespace tfc::passes::testing
