// Walks the table of passes: what runs, what is verified, printed, dumped and timed.
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Regex.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <chrono>

#include "ir/algorithms.h"
#include "ir/check.h"
#include "passes/pass.h"

namespace tfc::passes {
namespace {

using ir::Diagnostics;
using ir::Module;

constexpr std::string_view kReuseMemory = "reuse-memory";  // a setting of plan-memory, not a pass

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) {
    if (!contains(names, pass.name)) names.emplace_back(pass.name);
  }
  return names;
}

void check_name(const std::string& name, std::string_view option, std::vector<std::string> known,
                Diagnostics& diagnostics) {
  if (contains(known, name)) return;
  ir::Diagnostic& error = diagnostics.error({}, std::string(option) + ": no pass is named '" + name + "'");
  if (const std::string near = ir::nearest_name(name, known); !near.empty()) {
    error.notes.push_back("did you mean '" + near + "'?");
  }
}

bool check_options(const PassOptions& options, Diagnostics& diagnostics) {
  const int errors = diagnostics.errors();
  std::vector<std::string> known = pass_names();
  if (!options.stop_after.empty()) check_name(options.stop_after, "--stop-after", known, diagnostics);
  std::vector<std::string> printable = known;
  printable.emplace_back("all");
  for (const std::string& name : options.print_before)
    check_name(name, "--print-before", printable, diagnostics);
  for (const std::string& name : options.print_after)
    check_name(name, "--print-after", printable, diagnostics);
  known.emplace_back(kReuseMemory);
  for (const std::string& name : options.disabled) {
    check_name(name, "--disable", known, diagnostics);
    if (contains(pass_names(), name) && !can_be_disabled(name)) {
      diagnostics.error({}, "--disable: '" + name + "' cannot be disabled, the compiler needs what it makes");
    }
  }
  std::string why;
  if (!options.print_filter.empty() && !llvm::Regex(options.print_filter).isValid(why)) {
    diagnostics.error({}, "--print-filter: '" + options.print_filter + "' is no regular expression: " + why);
  }
  return diagnostics.errors() == errors;
}

size_t count_nodes(const Module& module) {
  size_t count = 0;
  for (const ir::Entry& entry : module.entries) count += entry.graph.node_count();
  return count;
}

int count_remarks(const Diagnostics& diagnostics, std::string_view pass) {
  int count = 0;
  for (const ir::Diagnostic& item : diagnostics.all()) {
    count += item.severity == ir::Severity::Remark && item.name == pass;
  }
  return count;
}

void print_module(const Module& module, const PassOptions& options, std::string_view heading) {
  llvm::errs() << "; " << llvm::StringRef(heading) << "\n";
  if (options.print_filter.empty()) {
    llvm::errs() << ir::print(module) << "\n";
    return;
  }
  const llvm::Regex filter(options.print_filter);
  for (const ir::Entry& entry : module.entries) {
    if (filter.match(entry.name)) llvm::errs() << ir::print(entry, module) << "\n";
  }
}

bool write_dump(const Module& module, const std::string& folder, size_t number, std::string_view pass,
                Diagnostics& diagnostics) {
  std::error_code failure = llvm::sys::fs::create_directories(folder);
  const std::string path =
      folder + (number < 10 ? "/0" : "/") + std::to_string(number) + "-" + std::string(pass) + ".tcir";
  if (!failure) {
    llvm::raw_fd_ostream file(path, failure);
    if (!failure) file << ir::print(module);
    if (!failure) {
      file.close();
      failure = file.error();
      file.clear_error();
    }
  }
  if (failure) diagnostics.error({}, "cannot write '" + path + "': " + failure.message()).name = "file";
  return !failure;
}

void print_times(const std::vector<PassRecord>& records) {
  double total = 0;
  for (const PassRecord& record : records) {
    total += record.seconds;
    std::string name = record.name;
    name.resize(std::max<size_t>(name.size(), 20), ' ');
    llvm::errs() << llvm::format("%9.3f ms  ", 1000 * record.seconds) << name
                 << llvm::format(" %7zu -> %zu nodes", record.nodes_before, record.nodes_after)
                 << (!record.ran      ? " (not run)"
                     : record.changed ? ""
                                      : " (unchanged)")
                 << "\n";
  }
  llvm::errs() << llvm::format("%9.3f ms  all passes\n", 1000 * total);
}

/// Ids without gaps, operands before users: as a graph is when it is read from a dump, so that compilation
/// goes on from a dump exactly as without it.
bool is_compact(const ir::Graph& graph) {
  return graph.node_capacity() == graph.node_count() && ir::operands_come_first(graph);
}

class Runner {
 public:
  Runner(Module& module, const PassOptions& options, Diagnostics& diagnostics,
         std::vector<PassRecord>& records)
      : module_(module), options_(options), diagnostics_(diagnostics), records_(records) {}

  bool run(const Pass& pass) {
    const bool runs =
        pass.mandatory || (options_.optimisation > 0 && !contains(options_.disabled, pass.name));
    PassRecord record;
    record.name = pass.name;
    record.ran = runs;
    record.nodes_before = record.nodes_after = count_nodes(module_);
    ++number_;
    if (wants(options_.print_before, pass)) print_module(module_, options_, "before " + record.name);
    if (runs) apply(pass, record);
    module_.phase = pass.after;
    if (wants(options_.print_after, pass)) {
      const std::string heading = "after " + record.name;
      if (record.changed) print_module(module_, options_, heading);
      if (!record.changed) llvm::errs() << "; " << heading << (runs ? " (unchanged)\n" : " (not run)\n");
    }
    records_.push_back(record);
    if (diagnostics_.errors() > errors_before_) return false;
    if (record.changed && !options_.dump_dir.empty() &&
        !write_dump(module_, options_.dump_dir, number_, pass.name, diagnostics_)) {
      return false;
    }
    return !verifies() || check(pass);
  }

 private:
  static bool wants(const std::vector<std::string>& names, const Pass& pass) {
    return contains(names, "all") || contains(names, pass.name);
  }

  bool verifies() const {
#ifdef NDEBUG
    return options_.verify_each;
#else
    return true;
#endif
  }

  void apply(const Pass& pass, PassRecord& record) {
    PassContext context{options_, diagnostics_};
    const int remarks = count_remarks(diagnostics_, pass.name);
    const auto start = std::chrono::steady_clock::now();
    record.changed = pass.run(module_, context);
    if (record.changed) {
      for (ir::Entry& entry : module_.entries) {
        if (!is_compact(entry.graph)) entry.graph.compact();
      }
    }
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    record.nodes_after = count_nodes(module_);
    record.remarks = count_remarks(diagnostics_, pass.name) - remarks;
  }

  bool check(const Pass& pass) {
    if (ir::verify(module_, diagnostics_)) return true;
    diagnostics_
        .error({},
               "the module is not legal after '" + std::string(pass.name) +
                   "'; this is a fault of the compiler: please report it with the description and the flags")
        .name = "compiler";
    return false;
  }

  Module& module_;
  const PassOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<PassRecord>& records_;
  const int errors_before_ = diagnostics_.errors();
  size_t number_ = 0;
};

}  // namespace

bool run_pipeline(Module& module, ir::Phase until, const PassOptions& options, Diagnostics& diagnostics,
                  std::vector<PassRecord>* records) {
  if (!check_options(options, diagnostics)) return false;
  std::vector<PassRecord> own_records;
  std::vector<PassRecord>& list = records ? *records : own_records;
  if (module.phase < until) {
    Runner runner(module, options, diagnostics, list);
    const ir::Phase from = module.phase;
    for (const Pass& pass : all_passes()) {
      if (pass.before < from || pass.after > until) continue;
      if (!runner.run(pass)) return false;
      if (pass.name == options.stop_after) break;
    }
  }
  if (options.time_passes) print_times(list);
  return true;
}

}  // namespace tfc::passes
