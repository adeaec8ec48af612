#include "tools/kernel_profile.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "ir/check.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tfc::tools {
namespace {

using ir::Symbol;
using llvm::formatv;

/// Sizes as the entry sees them. Decoding: one token for each row, into a cache of T.
ir::Point entry_point(const ir::Module& planned, const std::string& entry, ir::Point point) {
  const bool source = planned.facts.text("kind") == "encoder-decoder";
  if (entry == "decode") {
    point[Symbol::C] = point[Symbol::T];
    point[Symbol::T] = 1;
  }
  if (!source) point[Symbol::S] = point[Symbol::T];
  return point;
}

/// The plan's calls with their FLOPs and bytes, summed over the iterations of loops. By record: the borders
/// of loops are there too, without a kernel.
std::vector<RecordCost> planned_costs(const ir::Module& planned, const std::string& name, ir::Point point) {
  std::vector<RecordCost> costs;
  int64_t iterations = 1;
  for (const ir::Record& record : planned.entry(name)->plan->records) {
    RecordCost cost{name, record.node, "", 0, 0, 0, 0};
    if (record.kind == ir::Record::Kind::LoopBegin) iterations = record.tasks.at(point);
    if (record.kind == ir::Record::Kind::LoopEnd) iterations = 1;
    if (record.kind == ir::Record::Kind::Call) {
      cost.kernel = record.kernel.text();
      for (int64_t i = 0; i < iterations; ++i) {
        point[Symbol::I] = i;
        cost.flops += static_cast<double>(record.flops.at(point));
        cost.bytes += static_cast<double>(record.bytes.at(point));
      }
      point[Symbol::I] = 0;
    }
    costs.push_back(cost);
  }
  return costs;
}

/// The library's records of one entry, filled by its calls while this lives.
class Listener {
 public:
  Listener(const LoadedModel& model, int entry, size_t count)
      : model_(model), entry_(entry), records_(count) {
    const int64_t found = model.api().profile(model.session(), entry, records_.data(), signed_count());
    TFC_CHECK(found == signed_count(), "the library has another number of records than its plan");
  }
  ~Listener() { model_.api().profile(model_.session(), entry_, nullptr, 0); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::vector<tc_record>& records() const { return records_; }
  void clear() {
    for (tc_record& record : records_) record.calls = record.nanoseconds = 0;
  }

 private:
  int64_t signed_count() const { return static_cast<int64_t>(records_.size()); }
  const LoadedModel& model_;
  int entry_;
  std::vector<tc_record> records_;
};

/// "layers.3.attn.q" -> "layers.*.attn.q".
std::string without_numbers(const std::string& node) {
  std::string text;
  for (size_t i = 0; i < node.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(node[i]));
    const bool begins = digit && (i == 0 || node[i - 1] == '.');
    size_t end = i;
    while (end < node.size() && std::isdigit(static_cast<unsigned char>(node[end]))) ++end;
    if (begins && (end == node.size() || node[end] == '.')) {
      text += '*';
      i = end - 1;
    } else {
      text += node[i];
    }
  }
  return text;
}

/// Seconds that the machine needs at least: the nearer roof.
double roof_seconds(const RecordCost& cost, const Machine& machine) {
  return std::max(cost.flops / machine.flops, cost.bytes / machine.bandwidth);
}

bool is_compute_bound(const RecordCost& cost, const Machine& machine) {
  return cost.flops / machine.flops > cost.bytes / machine.bandwidth;
}

struct Line {
  RecordCost cost;
  double roof = 0;
  size_t records = 0;
};

std::vector<Line> lines_of(const KernelProfile& profile, const Machine& machine) {
  std::map<std::string, Line> lines;
  for (const RecordCost& record : profile.records) {
    if (record.kernel.empty()) continue;
    const std::string node = without_numbers(record.node);
    Line& line = lines[record.entry + "\n" + node + "\n" + record.kernel];
    line.cost.entry = record.entry;
    line.cost.node = node;
    line.cost.kernel = record.kernel;
    line.cost.calls += record.calls;
    line.cost.seconds += record.seconds;
    line.cost.flops += record.flops;
    line.cost.bytes += record.bytes;
    line.roof += roof_seconds(record, machine);
    ++line.records;
  }
  std::vector<Line> sorted;
  for (auto& [key, line] : lines) sorted.push_back(line);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Line& a, const Line& b) { return a.cost.seconds > b.cost.seconds; });
  return sorted;
}

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string line_text(const Line& line, const KernelProfile& profile, const Machine& machine) {
  const RecordCost& cost = line.cost;
  return formatv("{0,9:f3} {1,6:f1} %{2,7:f0}{3,11:f3}{4,10:f2}{5,8:f1} % {6} {7,-6} {8}  {9}\n",
                 1e3 * cost.seconds, share(cost.seconds, profile.seconds), cost.calls, cost.flops / 1e9,
                 cost.bytes / 1e6, share(line.roof, cost.seconds),
                 is_compute_bound(cost, machine) ? "flops" : "bytes", cost.entry, cost.node, cost.kernel)
      .str();
}

}  // namespace

KernelProfile profile_kernels(const ir::Module& planned, const ir::Point& point, const LoadedModel& model,
                              const MeasuredCall& call, double budget) {
  KernelProfile profile;
  profile.figure = call.figure.name;
  std::vector<std::unique_ptr<Listener>> listeners;
  for (const auto& [name, entry] : call.entries) {
    const std::vector<RecordCost> costs = planned_costs(planned, name, entry_point(planned, name, point));
    listeners.push_back(std::make_unique<Listener>(model, entry, costs.size()));
    profile.records.insert(profile.records.end(), costs.begin(), costs.end());
  }
  std::vector<std::vector<double>> times(profile.records.size());
  std::vector<double> wholes, rests;
  call.run();
  double total = 0;
  while (total < budget || wholes.size() < 3) {
    for (const auto& listener : listeners) listener->clear();
    wholes.push_back(seconds_of(call.run));
    total += wholes.back();
    rests.push_back(wholes.back());
    size_t at = 0;
    for (const auto& listener : listeners) {
      for (const tc_record& record : listener->records()) {
        times[at].push_back(static_cast<double>(record.nanoseconds) * 1e-9);
        rests.back() -= times[at].back();
        profile.records[at++].calls = static_cast<double>(record.calls);
      }
    }
  }
  for (size_t i = 0; i < times.size(); ++i) profile.records[i].seconds = median(times[i]);
  profile.seconds = median(wholes);
  profile.between = median(rests);
  return profile;
}

std::string profile_text(const KernelProfile& profile, const Machine& machine) {
  std::string text = formatv("{0}: {1:f3} ms, by kernel\n", profile.figure, 1e3 * profile.seconds).str();
  text += formatv("{0,9} {1,8}{2,7}{3,11}{4,10}{5,16} {6,-6} {7}\n", "ms", "of time", "calls", "GFLOP", "MB",
                  "of nearer roof", "entry", "node  kernel")
              .str();
  for (const Line& line : lines_of(profile, machine)) text += line_text(line, profile, machine);
  return text + formatv("{0,9:f3} {1,6:f1} % between kernels\n", 1e3 * profile.between,
                        share(profile.between, profile.seconds))
                    .str();
}

void write_profile(llvm::json::OStream& json, const KernelProfile& profile, const Machine& machine) {
  json.object([&] {
    json.attribute("figure", profile.figure);
    json.attribute("seconds", profile.seconds);
    json.attribute("seconds_between", profile.between);
    json.attributeArray("records", [&] {
      for (const RecordCost& record : profile.records) {
        if (record.kernel.empty()) continue;
        json.object([&] {
          json.attribute("entry", record.entry);
          json.attribute("node", record.node);
          json.attribute("kernel", record.kernel);
          json.attribute("calls", record.calls);
          json.attribute("seconds", record.seconds);
          json.attribute("flops", record.flops);
          json.attribute("bytes", record.bytes);
          json.attribute("roof", is_compute_bound(record, machine) ? "flops" : "bytes");
          json.attribute("roof_seconds", roof_seconds(record, machine));
        });
      }
    });
  });
}

}  // namespace tfc::tools
