// transformerc bench: how fast the compiled library is, beside what this machine can do in the same minute.
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "frontend/build_blocks.h"
#include "frontend/load.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/call_inputs.h"
#include "tools/common.h"
#include "tools/loaded_library.h"
#include "tools/machine_peak.h"
#include "tools/report.h"
#include "tools/verbs.h"

namespace tfc::tools {
namespace {

using ir::Symbol;
using llvm::formatv;

struct Machine {
  double flops = 0, flops_one = 0, bandwidth = 0, bandwidth_one = 0;
};

struct Figure {
  std::string name;
  double seconds = 0, tokens = 0, flops = 0,
         bytes = 0;  // of one call; bytes: what it must read at least, where that rules
};

// The median of single calls: a noisy neighbour spoils some of them, not the figure.
double median_seconds(double budget, const std::function<void()>& call) {
  call();
  std::vector<double> times;
  double total = 0;
  while (total < budget || times.size() < 3) {
    const auto start = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    total += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

Machine measure_machine(int threads, int real_bytes) {
  Machine machine;
  machine.flops = measure_flops(threads, real_bytes, 0.3);
  machine.flops_one = measure_flops(1, real_bytes, 0.3);
  machine.bandwidth = measure_read_bandwidth(threads, 0.4);
  machine.bandwidth_one = measure_read_bandwidth(1, 0.4);
  return machine;
}

class Bench {
 public:
  Bench(const ir::Module& planned, const LoadedLibrary& library, const ir::Point& point, int threads,
        double seconds)
      : planned_(planned),
        point_(point),
        seconds_(seconds),
        model_(library, 1, threads),
        inputs_(without_padding(random_inputs(planned, point, 5, false))),
        batch_(model_.info(), inputs_, point) {}

  int threads() const { return model_.api().threads(model_.session()); }

  std::vector<Figure> run() {
    std::vector<Figure> figures = {forward()};
    if (model_.info().entries & (1u << TC_ENTRY_TRAIN)) figures.push_back(train_step());
    const bool decodes = model_.info().entries & (1u << TC_ENTRY_DECODE);
    if (decodes && model_.info().kind == TC_KIND_DECODER) figures.push_back(decode());
    return figures;
  }

  /// Bytes by kind, at the design point.
  std::vector<std::pair<std::string, size_t>> bytes() const {
    const auto memory = [&](int what) {
      return model_.api().memory(what, point_[Symbol::B], point_[Symbol::T], point_[Symbol::S], threads());
    };
    const auto workspace = [&](int entry) { return memory(static_cast<int>(TC_MEMORY_WORKSPACE) + entry); };
    std::vector<std::pair<std::string, size_t>> list = {{"parameters", memory(TC_MEMORY_PARAMETERS)},
                                                        {"forward workspace", workspace(TC_ENTRY_INFER)}};
    if (model_.info().entries & (1u << TC_ENTRY_TRAIN)) {
      list.emplace_back("gradients", memory(TC_MEMORY_GRADIENTS));
      list.emplace_back("moments", memory(TC_MEMORY_MOMENTS));
      list.emplace_back("training workspace", workspace(TC_ENTRY_TRAIN));
    }
    return list;
  }

 private:
  // Both sides of an encoder-decoder are tokens.
  double tokens() const { return static_cast<double>(batch_.batch.B * (batch_.batch.T + batch_.batch.S)); }

  Figure forward() {
    const ir::Graph& graph = planned_.entry("infer")->graph;
    const int64_t elements = graph.type(graph.output("output")).elements().at(point_);
    std::vector<uint8_t> output(static_cast<size_t>(elements * model_.info().real_bytes));
    void* outputs[] = {output.data()};
    tc_batch call = batch_.batch;
    call.targets = nullptr;
    const double seconds = median_seconds(
        seconds_, [&] { model_.check(model_.api().forward(model_.session(), &call, 0, outputs)); });
    return {"forward", seconds, tokens(), forward_flops(planned_, point_), 0};
  }

  Figure train_step() {
    tc_adamw settings{};
    settings.size = sizeof settings;
    settings.lr = 1e-4;
    settings.beta1 = 0.9;
    settings.beta2 = 0.95;
    settings.eps = 1e-8;
    settings.clip = 1;
    double mean = 0;
    const double seconds = median_seconds(seconds_, [&] {
      model_.check(model_.api().train_step(model_.session(), &batch_.batch, &settings, &mean));
    });
    return {"training step", seconds, tokens(), 3 * forward_flops(planned_, point_), 0};
  }

  // Token by token: every weight is read once for each.
  Figure decode() {
    const int64_t T = point_[Symbol::T];
    std::vector<uint8_t> logits(
        static_cast<size_t>(model_.info().out_width * model_.info().real_bytes * batch_.batch.B));
    std::vector<tc_batch> steps;
    for (int64_t t = 0; t < T; ++t) steps.push_back(batch_.slice(model_.info(), t, 1));
    int64_t at = 0;
    const auto call = [&] {
      if (at == 0) model_.check(model_.api().cache_reset(model_.session(), batch_.batch.B, T, nullptr));
      model_.check(model_.api().decode(model_.session(), &steps[static_cast<size_t>(at)], logits.data()));
      at = (at + 1) % T;
    };
    const double seconds = median_seconds(seconds_, call);
    const double bytes = static_cast<double>(planned_.parameter_count() * model_.info().real_bytes);
    return {"decode", seconds, static_cast<double>(batch_.batch.B), 0, bytes};
  }

  const ir::Module& planned_;
  const ir::Point point_;
  const double seconds_;
  LoadedModel model_;
  Inputs inputs_;
  Batch batch_;
};

void print_text(const ir::Module& module, const ir::Point& point, const codegen::Target& target, int threads,
                const Machine& machine, const std::vector<Figure>& figures,
                const std::vector<std::pair<std::string, size_t>>& bytes) {
  auto& out = llvm::outs();
  out << formatv("{0}: {1}, B={2} T={3}", module.name, ir::dtype_name(module.real), point[Symbol::B],
                 point[Symbol::T]);
  if (has_source(module)) out << " S=" << point[Symbol::S];
  out << formatv(", {0} threads, {1}\n", threads, target.tune);
  out << formatv(
      "machine, now: {0:f1} GFLOP/s of multiply-adds (one thread {1:f1}), {2:f1} GB/s read (one thread "
      "{3:f1})\n\n",
      machine.flops / 1e9, machine.flops_one / 1e9, machine.bandwidth / 1e9, machine.bandwidth_one / 1e9);
  out << formatv("{0,-16} {1,10} {2,12} {3,10} {4,10}\n", "", "ms", "tokens/s", "GFLOP/s", "of peak");
  for (const Figure& figure : figures) {
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
  out << "\nbytes";
  for (const auto& [name, count] : bytes)
    out << (name == bytes[0].first ? ": " : ", ") << name << " " << count;
  out << "\n";
}

void print_json(const ir::Module& module, const ir::Point& point, const codegen::Target& target, int threads,
                const Machine& machine, const std::vector<Figure>& figures,
                const std::vector<std::pair<std::string, size_t>>& bytes) {
  auto& out = llvm::outs();
  out << formatv(
      "{{\"model\": \"{0}\", \"precision\": \"{1}\", \"cpu\": \"{2}\", \"threads\": {3}, \"B\": {4}, \"T\": "
      "{5}, \"S\": {6},\n",
      module.name, ir::dtype_name(module.real), target.tune, threads, point[Symbol::B], point[Symbol::T],
      point[Symbol::S]);
  out << formatv(
      " \"machine\": {{\"flops\": {0:e4}, \"flops_one_thread\": {1:e4}, \"read_bytes\": {2:e4}, "
      "\"read_bytes_one_thread\": {3:e4}},\n",
      machine.flops, machine.flops_one, machine.bandwidth, machine.bandwidth_one);
  out << " \"figures\": [";
  for (const Figure& figure : figures) {
    out << (&figure == &figures[0] ? "\n" : ",\n")
        << formatv(
               "  {{\"name\": \"{0}\", \"seconds\": {1:e4}, \"tokens_per_second\": {2:e4}, \"flops\": "
               "{3:e4}, \"bytes_read\": {4:e4}}",
               figure.name, figure.seconds, figure.tokens / figure.seconds, figure.flops / figure.seconds,
               figure.bytes / figure.seconds);
  }
  out << "\n ],\n \"bytes\": {";
  for (const auto& [name, count] : bytes)
    out << (name == bytes[0].first ? "" : ", ") << "\"" << name << "\": " << count;
  out << "}}\n";
}

}  // namespace

int bench(const Options& options) {
  ir::Diagnostics diagnostics = diagnostics_for(options);
  int status = kDone;
  const auto target = target_of(options, diagnostics, status);
  const auto file = target ? read_input(options, status) : nullptr;
  if (!file) return status;
  const auto description = frontend::load_description(file, options.sets, diagnostics);
  if (!description) return finish(options, diagnostics);
  ir::Module module = frontend::build_blocks(*description, options.precision);
  const passes::PassOptions pass_options = pass_options_of(options, module);
  if (!passes::run_pipeline(module, ir::Phase::Planned, pass_options, diagnostics))
    return finish(options, diagnostics);
  const auto library = LoadedLibrary::build(module, *target, pass_options.optimisation, diagnostics);
  if (!library) return finish(options, diagnostics);
  finish(options, diagnostics);
  try {
    Bench bench(module, *library, pass_options.point, options.threads, options.seconds);
    Machine machine = measure_machine(bench.threads(), static_cast<int>(ir::dtype_bytes(module.real)));
    const std::vector<Figure> figures = bench.run();
    // The machine's best of before and after: a share of a peak that a neighbour had spoilt would flatter.
    const Machine after = measure_machine(bench.threads(), static_cast<int>(ir::dtype_bytes(module.real)));
    machine.flops = std::max(machine.flops, after.flops);
    machine.flops_one = std::max(machine.flops_one, after.flops_one);
    machine.bandwidth = std::max(machine.bandwidth, after.bandwidth);
    machine.bandwidth_one = std::max(machine.bandwidth_one, after.bandwidth_one);
    (options.json ? print_json : print_text)(module, pass_options.point, *target, bench.threads(), machine,
                                             figures, bench.bytes());
    return kDone;
  } catch (const LibraryError& error) {
    return complain(error.message, kInputIsWrong);
  }
}

}  // namespace tfc::tools
