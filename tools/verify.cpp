// transformerc verify: is the compiled code of this very model what the float64 interpreter says it should
// be?
//
//   outputs and gradients   every entry of the library against the interpreter on the same parameters and
//   inputs finite differences      the interpreter's gradients against differences of its own loss bits 1 to
//   4 threads, and decoding through the cache in two splits: the same to the bit
#include <algorithm>
#include <cmath>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/common.h"
#include "tools/loaded_library.h"
#include "tools/verbs.h"
#include "tools/verification.h"

namespace tfc::tools {
namespace {

using ir::Symbol;
using llvm::formatv;

struct Summary {
  std::string group;
  const Check* worst = nullptr;
  size_t count = 0, failed = 0;
};

std::vector<Summary> summaries(const std::vector<Check>& checks) {
  std::vector<Summary> list;
  const auto rank = [](const Check& check) {
    return check.ok() ? check.error : std::isnan(check.error) ? INFINITY : 1e300 + check.error;
  };
  for (const Check& check : checks) {
    if (list.empty() || list.back().group != check.group) list.push_back({check.group, nullptr, 0, 0});
    Summary& summary = list.back();
    ++summary.count;
    summary.failed += !check.ok();
    if (!summary.worst || rank(check) > rank(*summary.worst)) summary.worst = &check;
  }
  return list;
}

void print_text(const ir::Module& module, const ir::Point& point, const Verification& verification) {
  auto& out = llvm::outs();
  out << formatv("{0}: compiled {1} code against the float64 interpreter, B={2} T={3}", module.name,
                 ir::dtype_name(module.real), point[Symbol::B], point[Symbol::T]);
  if (has_source(module)) out << " S=" << point[Symbol::S];
  out << "\n";
  for (const Summary& summary : summaries(verification.checks)) {
    out << formatv("  {0,-20} {1,5} compared  greatest error {2,-9} (tolerance {3})  {4}\n", summary.group,
                   summary.count, formatv("{0:e2}", summary.worst->error).str(),
                   formatv("{0:e0}", summary.worst->tolerance).str(),
                   summary.failed ? "DIFFERS" : summary.worst->name);
  }
  for (const Check& check : verification.checks) {
    if (!check.ok())
      out << formatv("  differs: {0}: {1}: error {2:e3}, tolerance {3:e0}\n", check.group, check.name,
                     check.error, check.tolerance);
  }
}

std::string json_number(double value) {
  return std::isfinite(value) ? formatv("{0:e6}", value).str() : "null";
}

void print_json(const ir::Module& module, const ir::Point& point, const Verification& verification, bool ok) {
  auto& out = llvm::outs();
  out << formatv(
      "{{\"model\": \"{0}\", \"precision\": \"{1}\", \"B\": {2}, \"T\": {3}, \"S\": {4}, \"ok\": {5}, "
      "\"bits\": \"{6}\", "
      "\"checks\": [",
      module.name, ir::dtype_name(module.real), point[Symbol::B], point[Symbol::T], point[Symbol::S], ok,
      verification.bits);
  bool first = true;
  for (const Check& check : verification.checks) {
    out << (first ? "\n" : ",\n")
        << formatv(
               "  {{\"group\": \"{0}\", \"name\": \"{1}\", \"error\": {2}, \"tolerance\": {3:e0}, \"ok\": "
               "{4}}",
               check.group, check.name, json_number(check.error), check.tolerance, check.ok());
    first = false;
  }
  out << "\n]}\n";
}

// Sizes that leave a remainder everywhere and that the interpreter gets through.
ir::Point verification_point(const Options& options, const ir::Module& module) {
  Options small = options;
  if (!options.point_given) {
    const int64_t max_seq = module.facts.integer("max_seq", 0);
    small.tokens_given = true;
    small.passes.point[Symbol::B] = 2;
    small.passes.point[Symbol::T] = max_seq > 0 ? std::min<int64_t>(max_seq, 9) : 9;
    small.passes.point[Symbol::S] = max_seq > 0 ? std::min<int64_t>(max_seq, 7) : 7;
  }
  return pass_options_of(small, module).point;
}

}  // namespace

int verify(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  const auto target = target_of(options, diagnostics);
  const auto file = target ? read_input(options, diagnostics) : nullptr;
  if (!file) return finish(options, diagnostics);
  const auto description = frontend::load_description(file, options.overrides, diagnostics);
  if (!description) return finish(options, diagnostics);
  const ir::Module blocks = frontend::build_blocks(*description, options.precision);
  const passes::PassOptions pass_options = pass_options_of(options, blocks);
  const ir::Point point = verification_point(options, blocks);
  if (!check_point(point, blocks, diagnostics)) return finish(options, diagnostics);

  ir::Diagnostics unheard;  // the same passes speak once, below
  ir::Module joint = blocks;
  if (!passes::run_pipeline(joint, ir::Phase::Joint, pass_options, unheard)) return finish(options, unheard);
  const auto library = compile_and_load(blocks, pass_options, *target, diagnostics);
  if (!library) return finish(options, diagnostics);
  finish(options, diagnostics);
  try {
    Verification verification(joint, *library, point);
    verification.run();
    const bool ok = std::all_of(verification.checks.begin(), verification.checks.end(),
                                [](const Check& c) { return c.ok(); });
    if (options.json) {
      print_json(joint, point, verification, ok);
    } else {
      print_text(joint, point, verification);
      llvm::outs() << (ok ? "verified"
                          : "the compiled code differs: a fault of the compiler; please report it with the "
                            "description")
                   << (verification.differences_note.empty()
                           ? ""
                           : " (finite differences: " + verification.differences_note + ")")
                   << "\n";
    }
    return ok ? kDone : kCompilerFault;
  } catch (const LibraryError& error) {
    return complain("the library refuses: " + error.message, kCompilerFault);
  }
}

}  // namespace tfc::tools
