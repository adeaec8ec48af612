// The compiler as one straight walk: command line -> description -> block graph -> passes -> native code ->
// files. With a verb in front (train, bench, verify, norms) that verb's own file goes on from here.
#include <exception>

#include "codegen/codegen.h"
#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "ir/check.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/common.h"
#include "tools/emit.h"
#include "tools/options.h"
#include "tools/outputs.h"
#include "tools/verbs.h"

using namespace tfc;
using namespace tfc::tools;

namespace {

struct Input {
  ir::Module module;
  std::vector<std::string> files;  // that were read
};

// A description becomes a block graph; a dump is taken as it is.
std::optional<Input> read(const Options& options, ir::Diagnostics& diagnostics) {
  auto file = read_input(options, diagnostics);
  if (!file) return std::nullopt;
  if (options.input.ends_with(".toml")) {
    const auto description = frontend::load_description(file, options.overrides, diagnostics);
    if (!description) return std::nullopt;
    return Input{frontend::build_blocks(*description, options.precision), description->files};
  }
  auto module = ir::read_module(file, diagnostics);
  if (!module || !ir::verify(*module, diagnostics)) return std::nullopt;
  return Input{std::move(*module), {options.input}};
}

// How far the passes must go for what is asked for.
ir::Phase phase_needed(const Options& options, const ir::Module& module) {
  if (!options.passes.stop_after.empty() || options.check) return ir::Phase::Planned;
  ir::Phase needed = module.phase;
  for (const EmitRequest& request : options.emit) {
    if (request.kind == Emit::Toml) continue;
    const bool graph = request.kind == Emit::Ir || request.kind == Emit::Dot;
    needed = std::max(needed, graph ? request.phase : ir::Phase::Planned);
  }
  return needed;
}

// What a flag asks for has been decided in the dump that is read.
std::string late_flag(const Options& options, const ir::Module& dump) {
  std::vector<std::pair<std::string, std::string>> asked;  // flag and pass
  const passes::PassOptions& wanted = options.passes;
  if (!wanted.stop_after.empty()) asked.emplace_back("--stop-after", wanted.stop_after);
  for (const std::string& name : wanted.disabled) asked.emplace_back("--disable", name);
  for (const std::string& name : wanted.print_before) asked.emplace_back("--print-before", name);
  for (const std::string& name : wanted.print_after) asked.emplace_back("--print-after", name);
  if (wanted.functions != "all") asked.emplace_back("--functions", "derive-entries");
  const auto still_runs = [&](const passes::Pass& pass) { return pass.before >= dump.phase; };
  for (const auto& [flag, name] : asked) {
    const std::string_view by = name == "reuse-memory" ? "plan-memory" : std::string_view(name);
    bool known = false, runs = false;
    for (const passes::Pass& pass : passes::all_passes()) {
      if (by != pass.name) continue;
      known = true;
      runs |= still_runs(pass);
    }
    if (known && !runs) {
      return flag + ": the pass '" + std::string(by) + "' ran before the dump was made, which is of phase " +
             std::string(ir::phase_name(dump.phase));
    }
  }
  return "";
}

// Why a dump of that phase cannot give what is asked for. Dumps of ops and fused are for reading: what they
// leave out (which passes ran) the others do not need.
std::string misfit(const Options& options, const ir::Module& dump, ir::Phase needed) {
  const std::string phase(ir::phase_name(dump.phase));
  const bool resumable =
      dump.phase == ir::Phase::Blocks || dump.phase == ir::Phase::Joint || dump.phase == ir::Phase::Planned;
  if (needed != dump.phase && !resumable) {
    return "an IR dump of phase " + phase + " can be checked and printed (--emit=ir:" + phase +
           "); compiling goes on from blocks, joint and planned";
  }
  for (const EmitRequest& request : options.emit) {
    const bool graph = request.kind == Emit::Ir || request.kind == Emit::Dot;
    if (graph && request.phase < dump.phase) {
      return "--emit: the dump is of phase " + phase + ", past " + std::string(ir::phase_name(request.phase));
    }
  }
  return late_flag(options, dump);
}

codegen::CompileRequest compile_request(const Options& options) {
  codegen::CompileRequest request;
  request.optimisation = options.passes.optimisation;
  for (const EmitRequest& emit : options.emit) {
    request.object |= emit.kind == Emit::Obj;
    request.kernels |= emit.kind == Emit::Kernels;
    request.archive |= emit.kind == Emit::Lib;
    request.shared |= emit.kind == Emit::So;
    request.llvm |= emit.kind == Emit::Llvm;
    request.llvm_opt |= emit.kind == Emit::LlvmOpt;
    request.assembly |= emit.kind == Emit::Asm;
  }
  return request;
}

bool needs_codegen(const codegen::CompileRequest& request) {
  return request.object || request.kernels || request.archive || request.shared || request.llvm ||
         request.llvm_opt || request.assembly;
}

int write_all(const Options& options, const std::vector<Output>& outputs,
              const std::vector<std::string>& files, ir::Diagnostics& diagnostics) {
  const Destination destination = destination_of(options, outputs.size());
  const bool to_files = destination.kind != Destination::Kind::StandardOutput;
  const Depfile depfile = {options.depfile,
                           depfile_text(to_files ? destination.path_of(outputs[0]) : "-", files)};
  std::string error;
  if (!write_outputs(outputs, destination, depfile, files, error)) {
    diagnostics.error({}, error).name = "file";
    return finish(options, diagnostics);
  }
  for (const Output& output : outputs) {
    const std::string path = destination.path_of(output);
    if (to_files && !is_written_through(path)) llvm::outs() << path << "\n";  // it may be standard output
  }
  return finish(options, diagnostics);
}

int compile(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  const auto target = target_of(options, diagnostics);
  auto input = target ? read(options, diagnostics) : std::nullopt;
  if (!input) return finish(options, diagnostics);
  const ir::Module start = input->module;
  const passes::PassOptions pass_options = pass_options_of(options, start);
  const ir::Phase needed = phase_needed(options, start);
  if (const std::string why = misfit(options, start, needed); !why.empty()) {
    diagnostics.error({}, why).name = "usage";
    return finish(options, diagnostics);
  }

  if (!check_point(pass_options.point, start, diagnostics)) return finish(options, diagnostics);

  std::vector<passes::PassRecord> records;
  ir::Module& module = input->module;
  if (!passes::run_pipeline(module, needed, pass_options, diagnostics, &records) || !diagnostics.ok() ||
      options.check) {
    return finish(options, diagnostics);
  }
  if (!pass_options.stop_after.empty()) {
    const std::string name = module.name + "." + pass_options.stop_after + ".tcir";
    return write_all(options, {{name, ir::print(module)}}, input->files, diagnostics);
  }

  codegen::Compiled code;
  if (codegen::CompileRequest request = compile_request(options); needs_codegen(request)) {
    request.architecture = architecture_of(module);
    auto compiled = codegen::compile(module, *target, request, diagnostics);
    if (!compiled) return finish(options, diagnostics);
    code = std::move(*compiled);
  } else if (module.phase == ir::Phase::Planned) {
    code.build_id = codegen::build_id(module, *target, pass_options.optimisation);
  }
  std::vector<Output> outputs;
  const Compilation compilation{start, module, pass_options, code, records};
  for (const EmitRequest& request : options.emit) outputs.push_back(output_of(request, compilation));
  return write_all(options, outputs, input->files, diagnostics);
}

int run(const Options& options) {
  switch (options.verb) {
    case Verb::Compile:
      return compile(options);
    case Verb::Train:
      return train(options);
    case Verb::Bench:
      return bench(options);
    case Verb::Verify:
      return verify(options);
    case Verb::Norms:
      return norms(options);
    case Verb::Help:
      llvm::outs() << help_text(options.help_topic);
      return kDone;
    case Verb::Version:
      llvm::outs() << "transformerc " TFC_VERSION " (LLVM 19)\n";
      return kDone;
  }
  return kCompilerFault;
}

// Standard output may be a full disk; LLVM's streams abort where an error is not taken note of.
int flushed(int status) {
  auto& out = llvm::outs();
  out.flush();
  if (out.has_error()) {
    const std::string why = out.error().message();
    out.clear_error();
    if (status == kDone) status = complain("cannot write to standard output: " + why, kFileTrouble);
  }
  llvm::errs().clear_error();  // nobody is left to be told
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::string error;
  const auto options = parse_options({argv + 1, argv + argc}, error);
  if (!options) return flushed(complain(error, kUsageIsWrong));
  try {
    return flushed(run(*options));
  } catch (const std::exception& fault) {
    ir::compiler_fault(std::string("uncaught exception: ") + fault.what());
  }
}
