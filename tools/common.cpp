#include "tools/common.h"

#include <algorithm>

#include "frontend/architecture.h"
#include "frontend/load.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/norm_lists.h"

namespace tfc::tools {

ir::Diagnostics diagnostics_for(const Options& options) {
  ir::Diagnostics diagnostics;
  diagnostics.warnings_are_errors = options.warnings_are_errors;
  diagnostics.remarks_wanted = options.remarks;
  diagnostics.disabled_warnings = options.disabled_warnings;
  return diagnostics;
}

namespace {

int status_of(const ir::Diagnostic& error) {
  if (error.name == "usage") return kUsageIsWrong;
  if (error.name == "file") return kFileTrouble;
  if (error.name == "compiler") return kCompilerFault;
  return kInputIsWrong;
}

}  // namespace

int finish(const Options& options, const ir::Diagnostics& diagnostics) {
  llvm::errs() << (options.json_diagnostics ? diagnostics.json() : diagnostics.text());
  if (diagnostics.ok()) return kDone;
  int status = kInputIsWrong;
  for (const ir::Diagnostic& item : diagnostics.all()) {
    if (item.severity == ir::Severity::Error) status = std::max(status, status_of(item));
  }
  return status;
}

int complain(const std::string& text, int status) {
  llvm::errs() << "transformerc: error: " << text << "\n";
  return status;
}

std::shared_ptr<const ir::SourceFile> read_input(const Options& options, ir::Diagnostics& diagnostics) {
  std::string error;
  auto file = frontend::read_source(options.input, error);
  if (!file) diagnostics.error({}, error).name = "file";
  return file;
}

std::optional<codegen::Target> target_of(const Options& options, ir::Diagnostics& diagnostics) {
  ir::Diagnostics own;
  auto target = codegen::resolve_target(options.cpu, own);
  if (!target) {
    for (const ir::Diagnostic& fault : own.all()) diagnostics.error({}, fault.message).name = "usage";
  } else if (!options.cpu_given) {
    diagnostics.remark("target", {},
                       "compiled for the CPU of this machine, " + target->tune +
                           "; --cpu=x86-64-v3 makes a library for others");
  }
  return target;
}

bool check_point(const ir::Point& point, const ir::Module& module, ir::Diagnostics& diagnostics) {
  const int64_t max_seq = module.facts.integer("max_seq", 0);
  if (max_seq == 0 || (point[ir::Symbol::T] <= max_seq && point[ir::Symbol::S] <= max_seq)) return true;
  const bool own = point[ir::Symbol::T] > max_seq;
  diagnostics
      .error({}, std::string("--at: ") + (own ? "T" : "S") + " is " +
                     std::to_string(point[own ? ir::Symbol::T : ir::Symbol::S]) + ", expected at most " +
                     std::to_string(max_seq) + " (max_seq)")
      .name = "usage";
  return false;
}

std::string architecture_of(const ir::Module& module) {
  return frontend::architecture(module.description, passes::auto_placement);
}

bool has_source(const ir::Module& module) { return module.facts.text("kind") == "encoder-decoder"; }

passes::PassOptions pass_options_of(const Options& options, const ir::Module& module) {
  passes::PassOptions result = options.passes;
  ir::Point& point = result.point;
  const int64_t max_seq = module.facts.integer("max_seq", 0);
  const int64_t tokens = max_seq > 0 ? std::min<int64_t>(max_seq, 256) : 256;
  if (!options.tokens_given) point[ir::Symbol::T] = tokens;
  if (!options.tokens_given && !options.source_given) point[ir::Symbol::S] = tokens;
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
