#include "models/compiled.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "frontend/build_blocks.h"
#include "frontend/load.h"

namespace tfc::models {
namespace {

[[noreturn]] void give_up(const ir::Diagnostics& diagnostics) {
  ADD_FAILURE() << diagnostics.text();
  throw std::runtime_error("the model does not compile");
}

}  // namespace

ir::Module blocks(const std::string& description, const Settings& settings) {
  ir::Diagnostics diagnostics;
  auto file = std::make_shared<ir::SourceFile>(ir::SourceFile{settings.name + ".toml", description});
  const auto checked = frontend::load_description(std::move(file), {}, diagnostics);
  if (!checked) give_up(diagnostics);
  return frontend::build_blocks(*checked, settings.precision);
}

Compiled compile(const std::string& description, const Settings& settings) {
  ir::Diagnostics diagnostics;
  const auto target = codegen::resolve_target(settings.cpu, diagnostics);
  if (!target) give_up(diagnostics);
  passes::PassOptions options;
  options.optimisation = settings.optimisation;
  options.disabled = settings.disabled;
  options.point = settings.point;
  options.verify_each = true;

  Compiled result;
  result.joint = blocks(description, settings);
  if (!passes::run_pipeline(result.joint, ir::Phase::Joint, options, diagnostics)) give_up(diagnostics);
  result.planned = result.joint;
  if (!passes::run_pipeline(result.planned, ir::Phase::Planned, options, diagnostics)) give_up(diagnostics);
  const int level = settings.quick_code ? 0 : options.optimisation;
  result.library = tools::LoadedLibrary::build(result.planned, *target, level, diagnostics);
  if (!result.library) give_up(diagnostics);
  return result;
}

bool runs_here(const std::string& cpu) {
  ir::Diagnostics diagnostics;
  const auto wanted = codegen::resolve_target(cpu, diagnostics);
  const auto here = codegen::resolve_target("native", diagnostics);
  return wanted && here && wanted->isa_level <= here->isa_level;
}

ir::Point point(int64_t B, int64_t T, int64_t S) {
  ir::Point result;
  result[ir::Symbol::B] = B;
  result[ir::Symbol::T] = T;
  result[ir::Symbol::S] = S;
  result[ir::Symbol::C] = T;
  return result;
}

ir::Point point_for(const ir::Module& module, int64_t B, int64_t T, int64_t S) {
  return point(B, T, module.facts.text("kind") == "encoder-decoder" ? S : T);
}

}  // namespace tfc::models
