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
std::optional<Input> read(const Options& options, ir::Diagnostics& diagnostics, int& status) {
  auto file = read_input(options, status);
  if (!file) return std::nullopt;
  if (options.input.ends_with(".toml")) {
    const auto description = frontend::load_description(file, options.sets, diagnostics);
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

// Dumps of ops and fused are for reading: what they leave out (which passes ran) the others do not need.
bool dump_goes_on(const ir::Module& module, ir::Phase needed, std::string& error) {
  const bool resumable = module.phase == ir::Phase::Blocks || module.phase == ir::Phase::Joint ||
                         module.phase == ir::Phase::Planned;
  if (needed == module.phase || resumable) return true;
  error = "an IR dump of phase " + std::string(ir::phase_name(module.phase)) +
          " can be checked and printed (--emit=ir:" + std::string(ir::phase_name(module.phase)) +
          "); compiling goes on from blocks, joint and planned";
  return false;
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
  return request.object || request.kernels || request.archive || request.shared || request.llvm || request.llvm_opt ||
         request.assembly;
}

int write_all(const Options& options, const std::vector<Output>& outputs,
              const std::vector<std::string>& files) {
  const Destination destination = destination_of(options, outputs.size());
  const bool to_files = destination.kind != Destination::Kind::StandardOutput;
  const Depfile depfile = {options.depfile,
                           depfile_text(to_files ? destination.path_of(outputs[0]) : "-", files)};
  std::string error;
  if (!write_outputs(outputs, destination, depfile, options.input, error))
    return complain(error, kFileTrouble);
  for (const Output& output : outputs) {
    if (to_files) llvm::outs() << destination.path_of(output) << "\n";
  }
  return kDone;
}

int compile(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  int status = kDone;
  const auto target = target_of(options, diagnostics, status);
  if (!target) return status;

  auto input = read(options, diagnostics, status);
  if (!input) return finish(options, diagnostics, status);
  const ir::Module start = input->module;
  const passes::PassOptions pass_options = pass_options_of(options, start);
  const ir::Phase needed = phase_needed(options, start);
  if (std::string error; !dump_goes_on(start, needed, error)) return complain(error, kUsageIsWrong);
  for (const EmitRequest& request : options.emit) {
    const bool graph = request.kind == Emit::Ir || request.kind == Emit::Dot;
    if (graph && request.phase < start.phase) {
      return complain("--emit: the dump is of phase " + std::string(ir::phase_name(start.phase)) + ", past " +
                          std::string(ir::phase_name(request.phase)),
                      kUsageIsWrong);
    }
  }

  std::vector<passes::PassRecord> records;
  ir::Module& module = input->module;
  if (!passes::run_pipeline(module, needed, pass_options, diagnostics, &records) || !diagnostics.ok()) {
    return finish(options, diagnostics);
  }
  if (options.check) return finish(options, diagnostics);
  if (!pass_options.stop_after.empty()) {
    finish(options, diagnostics);
    return write_all(options, {{module.name + "." + pass_options.stop_after + ".tcir", ir::print(module)}},
                     input->files);
  }

  codegen::Compiled code;
  if (const codegen::CompileRequest request = compile_request(options); needs_codegen(request)) {
    auto compiled = codegen::compile(module, *target, request, diagnostics);
    if (!compiled) return finish(options, diagnostics);
    code = std::move(*compiled);
  } else if (module.phase == ir::Phase::Planned) {
    code.build_id = codegen::build_id(module, *target, pass_options.optimisation);
  }
  std::vector<Output> outputs;
  const Compilation compilation{start, module, pass_options, code, records};
  for (const EmitRequest& request : options.emit) outputs.push_back(output_of(request, compilation));
  finish(options, diagnostics);
  return write_all(options, outputs, input->files);
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

}  // namespace

int main(int argc, char** argv) {
  std::string error;
  const auto options = parse_options({argv + 1, argv + argc}, error);
  if (!options) return complain(error, kUsageIsWrong);
  try {
    return run(*options);
  } catch (const std::exception& fault) {
    ir::compiler_fault(std::string("uncaught exception: ") + fault.what());
  }
}
