// transformerc bench: how fast the compiled library is, beside what this machine can do in the same minute.
#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/common.h"
#include "tools/kernel_profile.h"
#include "tools/measured_model.h"
#include "tools/verbs.h"

namespace tfc::tools {
namespace {

using ir::Symbol;
using llvm::formatv;

/// All that a run of the verb found.
struct Findings {
  int threads = 0;
  Machine machine;
  std::vector<Figure> figures;
  std::vector<KernelProfile> profiles;
  std::vector<std::pair<std::string, size_t>> bytes;
};

Findings measure(const Options& options, const ir::Module& module, const LoadedLibrary& library,
                 const ir::Point& point) {
  Findings found;
  const int real_bytes = static_cast<int>(ir::dtype_bytes(module.real));
  auto model = std::make_unique<MeasuredModel>(module, library, point, options.threads);
  found.threads = model->threads();
  found.bytes = model->bytes();
  found.machine = measure_machine(found.threads, real_bytes);
  bool drift = false;
  for (const std::string& kind : options.figures.empty() ? model->kinds() : options.figures) {
    drift |= kind == "drift";
    if (kind == "drift") continue;
    const MeasuredCall call = model->call(kind);
    found.figures.push_back(call.figure);
    found.figures.back().seconds = median(time_calls(options.seconds, call.run));
    if (options.kernels) {
      found.profiles.push_back(profile_kernels(module, point, model->model(), call, options.seconds));
    }
  }
  model.reset();  // its threads and memory
  if (drift) {
    for (Figure& figure : measure_drift(module, library, point, options.threads))
      found.figures.push_back(figure);
  }
  found.machine = best_of(found.machine, measure_machine(found.threads, real_bytes));
  return found;
}

void print_text(const ir::Module& module, const ir::Point& point, const codegen::Target& target,
                const Findings& found) {
  auto& out = llvm::outs();
  const Machine& machine = found.machine;
  out << formatv("{0}: {1}, B={2} T={3}", module.name, ir::dtype_name(module.real), point[Symbol::B],
                 point[Symbol::T]);
  if (has_source(module)) out << " S=" << point[Symbol::S];
  out << formatv(", {0} threads, {1}\n", found.threads, target.tune);
  out << formatv(
      "machine, now: {0:f1} GFLOP/s of multiply-adds (one thread {1:f1}), {2:f1} GB/s read (one thread "
      "{3:f1})\n\n",
      machine.flops / 1e9, machine.flops_one / 1e9, machine.bandwidth / 1e9, machine.bandwidth_one / 1e9);
  out << formatv("{0,-16} {1,10} {2,12} {3,10} {4,10}\n", "", "ms", "tokens/s", "GFLOP/s", "of peak");
  for (const Figure& figure : found.figures) {
    out << formatv("{0,-16} {1,10:f3} {2,12:f0}", figure.name, 1e3 * figure.seconds,
                   figure.tokens / figure.seconds);
    if (figure.flops > 0) {
      out << formatv(" {0,10:f1} {1,8:f1} %\n", figure.flops / figure.seconds / 1e9,
                     100 * figure.flops / figure.seconds / machine.flops);
    } else {
      out << formatv("   weights read at {0:f1} GB/s, {1:f1} % of the bandwidth\n",
                     figure.bytes / figure.seconds / 1e9,
                     100 * figure.bytes / figure.seconds / machine.bandwidth);
    }
  }
  for (const KernelProfile& profile : found.profiles) out << "\n" << profile_text(profile, machine);
  out << "\nbytes";
  for (const auto& [name, count] : found.bytes)
    out << (name == found.bytes[0].first ? ": " : ", ") << name << " " << count;
  out << "\n";
}

void write_figure(llvm::json::OStream& json, const Figure& figure) {
  json.object([&] {
    json.attribute("name", figure.name);
    json.attribute("seconds", figure.seconds);
    json.attribute("tokens_per_second", figure.tokens / figure.seconds);
    json.attribute("flops", figure.flops / figure.seconds);
    json.attribute("bytes_read", figure.bytes / figure.seconds);
  });
}

void print_json(const ir::Module& module, const ir::Point& point, const codegen::Target& target,
                const Findings& found) {
  llvm::json::OStream json(llvm::outs(), 1);
  json.object([&] {
    json.attribute("model", module.name);
    json.attribute("precision", std::string(ir::dtype_name(module.real)));
    json.attribute("cpu", target.tune);
    json.attribute("threads", found.threads);
    json.attribute("B", point[Symbol::B]);
    json.attribute("T", point[Symbol::T]);
    json.attribute("S", point[Symbol::S]);
    json.attributeObject("machine", [&] {
      json.attribute("flops", found.machine.flops);
      json.attribute("flops_one_thread", found.machine.flops_one);
      json.attribute("read_bytes", found.machine.bandwidth);
      json.attribute("read_bytes_one_thread", found.machine.bandwidth_one);
    });
    json.attributeArray("figures", [&] {
      for (const Figure& figure : found.figures) write_figure(json, figure);
    });
    if (!found.profiles.empty()) {
      json.attributeArray("kernels", [&] {
        for (const KernelProfile& profile : found.profiles) write_profile(json, profile, found.machine);
      });
    }
    json.attributeObject("bytes", [&] {
      for (const auto& [name, count] : found.bytes) json.attribute(name, static_cast<int64_t>(count));
    });
  });
  llvm::outs() << "\n";
}

}  // namespace

int bench(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  const auto target = target_of(options, diagnostics);
  const auto file = target ? read_input(options, diagnostics) : nullptr;
  if (!file) return finish(options, diagnostics);
  const auto description = frontend::load_description(file, options.overrides, diagnostics);
  if (!description) return finish(options, diagnostics);
  ir::Module module = frontend::build_blocks(*description, options.precision);
  const passes::PassOptions pass_options = pass_options_of(options, module);
  if (!check_point(pass_options.point, module, diagnostics) ||
      !passes::run_pipeline(module, ir::Phase::Planned, pass_options, diagnostics))
    return finish(options, diagnostics);
  const auto library = LoadedLibrary::build(module, *target, pass_options.optimisation, diagnostics);
  if (!library) return finish(options, diagnostics);
  finish(options, diagnostics);
  try {
    const Findings found = measure(options, module, *library, pass_options.point);
    (options.json ? print_json : print_text)(module, pass_options.point, *target, found);
    return kDone;
  } catch (const LibraryError& error) {
    return complain(error.message, kInputIsWrong);
  }
}

}  // namespace tfc::tools
