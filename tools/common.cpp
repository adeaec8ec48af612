#include "tools/common.h"

#include <algorithm>

#include "frontend/load.h"
#include "llvm/Support/raw_ostream.h"

namespace tfc::tools {

ir::Diagnostics diagnostics_for(const Options& options) {
  ir::Diagnostics diagnostics;
  diagnostics.warnings_are_errors = options.warnings_are_errors;
  diagnostics.remarks_wanted = options.remarks;
  diagnostics.disabled_warnings = options.disabled_warnings;
  return diagnostics;
}

int finish(const Options& options, const ir::Diagnostics& diagnostics, int status) {
  llvm::errs() << (options.json_diagnostics ? diagnostics.json() : diagnostics.text());
  return status == kDone && !diagnostics.ok() ? kInputIsWrong : status;
}

int complain(const std::string& text, int status) {
  llvm::errs() << "transformerc: error: " << text << "\n";
  return status;
}

std::shared_ptr<const ir::SourceFile> read_input(const Options& options, int& status) {
  std::string error;
  auto file = frontend::read_source(options.input, error);
  if (!file) status = complain(error, kFileTrouble);
  return file;
}

std::optional<codegen::Target> target_of(const Options& options, ir::Diagnostics& diagnostics, int& status) {
  ir::Diagnostics own;
  auto target = codegen::resolve_target(options.cpu, own);
  if (!target) {
    for (const ir::Diagnostic& fault : own.all()) complain(fault.message, kUsageIsWrong);
    status = kUsageIsWrong;
  } else if (!options.cpu_given) {
    diagnostics.remark("target", {},
                       "compiled for the CPU of this machine, " + target->tune +
                           "; --cpu=x86-64-v3 makes a library for others");
  }
  return target;
}

bool has_source(const ir::Module& module) { return module.facts.text("kind") == "encoder-decoder"; }

passes::PassOptions pass_options_of(const Options& options, const ir::Module& module) {
  passes::PassOptions result = options.passes;
  ir::Point& point = result.point;
  const int64_t max_seq = module.facts.integer("max_seq", 0);
  const int64_t tokens = max_seq > 0 ? std::min<int64_t>(max_seq, 256) : 256;
  if (!options.point_given) {
    point[ir::Symbol::T] = point[ir::Symbol::S] = tokens;
  }
  const auto fix = [&](ir::Symbol symbol, const char* key) {
    if (const int64_t size = module.facts.integer(key, 0)) point[symbol] = size;
  };
  fix(ir::Symbol::B, "batch");
  fix(ir::Symbol::T, "seq");
  fix(ir::Symbol::S, "src_seq");
  // Without a source side S is what attention sees: the model's own tokens.
  if (!has_source(module)) point[ir::Symbol::S] = point[ir::Symbol::T];
  point[ir::Symbol::C] = max_seq > 0 ? max_seq : point[ir::Symbol::T];
  return result;
}

}  // namespace tfc::tools
