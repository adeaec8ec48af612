#include "tools/emit.h"

#include "codegen/header.h"
#include "codegen/python_module.h"
#include "ir/check.h"
#include "tools/report.h"

namespace tfc::tools {
namespace {

std::string dot_text(const ir::Module& module, const ir::Point& point) {
  std::string text;
  for (const ir::Entry& entry : module.entries) text += ir::dot(module, entry, point);
  return text;
}

// The graph as it is in an earlier phase than the one that the walk ends in.
bool module_at(ir::Phase phase, const ir::Module& from, passes::PassOptions options, ir::Module& result) {
  result = from;
  options.print_before.clear();
  options.print_after.clear();
  options.dump_dir.clear();
  options.time_passes = false;
  ir::Diagnostics unheard;  // the walk itself says it all once more
  return phase == from.phase || passes::run_pipeline(result, phase, options, unheard);
}

}  // namespace

Output output_of(const EmitRequest& request, const Compilation& c) {
  const std::string& name = c.planned.name;
  const uint64_t id = c.code.build_id;
  const std::string phase = std::string(ir::phase_name(request.phase));
  switch (request.kind) {
    case Emit::Lib:
      return {"lib" + name + ".a", c.code.archive};
    case Emit::So:
      return {"lib" + name + ".so", c.code.shared, true};
    case Emit::Obj:
      return {name + ".o", c.code.object};
    case Emit::Kernels:
      return {name + ".kernels.o", c.code.kernels};
    case Emit::Header:
      return {name + ".h", codegen::c_header(c.planned, id)};
    case Emit::Python:
      return {name + ".py", codegen::python_module(c.planned, id)};
    case Emit::Toml:
      return {name + ".resolved.toml", c.planned.description};
    case Emit::Llvm:
      return {name + ".ll", c.code.llvm};
    case Emit::LlvmOpt:
      return {name + ".opt.ll", c.code.llvm_opt};
    case Emit::Asm:
      return {name + ".s", c.code.assembly};
    case Emit::Report:
      return {name + ".report.txt", report_text(c.planned, c.options.point, c.records)};
    case Emit::Ir:
    case Emit::Dot:
      break;
  }
  ir::Module at;
  TFC_CHECK(module_at(request.phase, c.start, c.options, at), "passes that ran once failed the second time");
  if (request.kind == Emit::Ir) return {name + "." + phase + ".tcir", ir::print(at)};
  return {name + "." + phase + ".dot", dot_text(at, c.options.point)};
}

}  // namespace tfc::tools
