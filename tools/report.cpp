#include "tools/report.h"

#include <algorithm>
#include <map>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"

namespace tfc::tools {
namespace {

using llvm::formatv;
using llvm::StringRef;

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string line(const std::string& label, int64_t number, int64_t whole) {
  const double share = whole > 0 ? 100.0 * static_cast<double>(number) / static_cast<double>(whole) : 0;
  return formatv("  {0,-34} {1,16} {2,7:f1} %\n", label, grouped(number), share).str();
}

// "layers.3" of "layers.3.attn.q.weight", "encoder.layers.0" of an encoder's, "blocks.NAME" of what layers
// share; "" outside layers.
std::string layer_of(StringRef name) {
  for (const StringRef word : {"layers.", "blocks."}) {
    const size_t found = name.starts_with(word) ? 0 : name.find(("." + word).str());
    if (found == StringRef::npos) continue;
    const size_t number = name.find('.', found + 1) + 1;
    return name.substr(0, name.find('.', number)).str();
  }
  return "";
}

// "attn", "ffn"; all norms of a layer together.
std::string part_of(StringRef name, const std::string& layer) {
  const StringRef part = name.drop_front(layer.size() + 1).split('.').first;
  return part.starts_with("norm") ? "norms" : part.str();
}

struct LayerCost {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> parts;
  int64_t total = 0;
  void add(const std::string& part, int64_t count) {
    total += count;
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.first == part; });
    if (found == parts.end()) {
      parts.emplace_back(part, count);
    } else {
      found->second += count;
    }
  }
};

std::string layers_text(const std::vector<LayerCost>& layers, int64_t whole) {
  std::string text;
  for (size_t first = 0, next; first < layers.size(); first = next) {
    const LayerCost& layer = layers[first];
    const std::string stack = layer.name.substr(0, layer.name.rfind('.'));
    next = first + 1;
    while (next < layers.size() && layers[next].parts == layer.parts &&
           StringRef(layers[next].name).starts_with(stack + ".")) {
      ++next;
    }
    const size_t alike = next - first;
    const std::string label =
        alike == 1 ? layer.name
                   : layer.name + "-" + StringRef(layers[next - 1].name).rsplit('.').second.str();
    text += line(label, layer.total * static_cast<int64_t>(alike), whole);
    if (alike > 1) text += line("  each", layer.total, whole);
    for (const auto& [part, count] : layer.parts)
      text += line("    " + part + ", of its layer", count, layer.total);
  }
  return text;
}

std::string parameters_text(const ir::Module& module) {
  const int64_t whole = module.parameter_count();
  std::vector<LayerCost> layers;
  std::string before, after;
  std::map<std::string, int64_t> outside;
  std::vector<std::string> order;
  int64_t frozen = 0;
  for (const ir::Parameter& parameter : module.parameters) {
    if (parameter.frozen) frozen += parameter.elements();
    const std::string layer = layer_of(parameter.name);
    if (layer.empty()) {
      const std::string block = StringRef(parameter.name).rsplit('.').first.str();
      if (outside.emplace(block, 0).second) order.push_back(block);
      outside[block] += parameter.elements();
      continue;
    }
    if (layers.empty() || layers.back().name != layer) layers.push_back({layer, {}, 0});
    layers.back().add(part_of(parameter.name, layer), parameter.elements());
  }
  std::string text = "parameters\n";
  for (const std::string& block : order) text += line(block, outside[block], whole);
  text += layers_text(layers, whole) + line("total", whole, whole);
  return frozen > 0 ? text + line("frozen", frozen, whole) : text;
}

// The greatest sum of buffers that live at one record: no placement needs less.
int64_t lower_bound(const ir::Plan& plan, const ir::Point& point) {
  std::vector<int64_t> change(plan.records.size() + 2, 0);
  for (const ir::Buffer& buffer : plan.buffers) {
    const int64_t bytes = ir::align_up(buffer.bytes, 64).at(point);
    change[static_cast<size_t>(buffer.first)] += bytes;
    change[static_cast<size_t>(buffer.last) + 1] -= bytes;
  }
  int64_t live = 0, greatest = 0;
  for (const int64_t step : change) greatest = std::max(greatest, live += step);
  return greatest;
}

std::string memory_text(const ir::Module& module, const ir::Point& point) {
  const int64_t bytes_of_real = ir::dtype_bytes(module.real);
  const int64_t block = module.parameter_block() * bytes_of_real;
  const int64_t gradients = module.gradient_block() * bytes_of_real;
  std::string text = "bytes\n";
  text += formatv("  {0,-16} {1,18}\n", "parameters", grouped(block)).str();
  text += formatv("  {0,-16} {1,18}   from the first backward on\n", "gradients", grouped(gradients)).str();
  text += formatv("  {0,-16} {1,18}   from the first step on\n", "moments", grouped(2 * gradients)).str();
  text += "\nworkspace\n";
  text += formatv("  {0,-10} {1,18} {2,18} {3,8} {4,14} {5,9} {6,12} {7,12}\n", "entry", "bytes",
                  "lower bound", "excess", "scratch/thread", "records", "GFLOP", "traffic MB")
              .str();
  for (const ir::Entry& entry : module.entries) {
    if (!entry.plan) continue;
    const ir::Plan& plan = *entry.plan;
    const int64_t bytes = plan.workspace_bytes().at(point), bound = lower_bound(plan, point);
    double flops = 0, traffic = 0;
    int64_t iterations = 1;
    for (const ir::Record& record : plan.records) {
      if (record.kind == ir::Record::Kind::LoopBegin) iterations = record.tasks.at(point);
      if (record.kind == ir::Record::Kind::LoopEnd) iterations = 1;
      if (record.kind != ir::Record::Kind::Call) continue;
      flops += static_cast<double>(record.flops.at(point) * iterations);
      traffic += static_cast<double>(record.bytes.at(point) * iterations);
    }
    const double excess =
        bound > 0 ? 100.0 * static_cast<double>(bytes - bound) / static_cast<double>(bound) : 0;
    text += formatv("  {0,-10} {1,18} {2,18} {3,6:f1} % {4,14} {5,9} {6,12:f3} {7,12:f1}\n", entry.name,
                    grouped(bytes), grouped(bound), excess, grouped(plan.scratch_bytes().at(point)),
                    plan.records.size(), flops / 1e9, traffic / 1e6)
                .str();
  }
  return text;
}

// Of a copy's results, those that the backward reads: what the forward need not keep.
int64_t read_bytes(const ir::Graph& graph, ir::NodeId copy, const ir::Point& point) {
  const ir::Node& node = graph.node(copy);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < node.results.size(); ++i) {
    const std::vector<ir::Use> uses = graph.uses({copy, i});
    const bool read = std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
      const ir::Node& user = graph.node(use.node);
      return !user.late || user.op == ir::OpKind::Split;
    });
    if (read) bytes += node.results[i].bytes().at(point);
  }
  return bytes;
}

std::string again_text(const ir::Module& module, const ir::Point& point) {
  std::string text;
  for (const ir::Entry& entry : module.entries) {
    std::map<std::string, int> kernels;
    int64_t bytes = 0;
    for (const ir::NodeId id : entry.graph.nodes()) {
      const ir::Node& node = entry.graph.node(id);
      if (!node.late || node.op == ir::OpKind::Split) continue;
      ++kernels[node.body ? node.attributes.text("kernel") : std::string(ir::info(node.op).text)];
      bytes += read_bytes(entry.graph, id, point);
    }
    if (kernels.empty()) continue;
    std::string list;
    for (const auto& [kernel, count] : kernels)
      list += (list.empty() ? "" : ", ") + kernel + " " + std::to_string(count);
    text += formatv("  {0,-10} {1,18} bytes not kept, of {2}\n", entry.name, grouped(bytes), list).str();
  }
  return text.empty() ? text : "\ncomputed again by the backward\n" + text;
}

std::string flops_text(const ir::Module& module, const ir::Point& point) {
  const double forward = forward_flops(module, point);
  std::string text =
      "FLOPs (2 x matmul weights x tokens + 4 x tokens x keys x heads' width; masks not subtracted)\n";
  text += formatv("  {0,-16} {1,12:f3} GFLOP\n", "forward", forward / 1e9).str();
  text += formatv("  {0,-16} {1,12:f3} GFLOP   three forwards\n", "training step", 3 * forward / 1e9).str();
  return text;
}

std::string passes_text(const std::vector<passes::PassRecord>& records) {
  std::string text = "passes\n";
  for (const passes::PassRecord& record : records) {
    const char* what = !record.ran ? "off" : record.changed ? "changed" : "unchanged";
    text += formatv("  {0,-24} {1,-10}", record.name, what).str();
    if (record.changed)
      text += formatv(" {0,7} -> {1,7} nodes", record.nodes_before, record.nodes_after).str();
    if (record.remarks > 0)
      text += formatv("  {0} remark{1}", record.remarks, record.remarks == 1 ? "" : "s").str();
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text;
}

double node_flops(const ir::Graph& graph, ir::NodeId id, const ir::Point& point) {
  const ir::Node& node = graph.node(id);
  const auto shape_at = [&](uint32_t slot) -> const ir::Type& { return graph.type(graph.operand(id, slot)); };
  const auto value = [&](const ir::Dim& dim) { return static_cast<double>(dim.at(point)); };
  switch (node.op) {
    case ir::OpKind::Linear:
    case ir::OpKind::LinearLoss:
      return 2 * value(shape_at(0).rows()) * value(shape_at(1).elements());
    case ir::OpKind::ExpertLinear:  // of a token's experts alone
      return 2 * value(shape_at(0).rows()) * value(shape_at(1).elements()) / (value(shape_at(3).elements()) - 1);
    case ir::OpKind::Attention:
      return 4 * value(shape_at(0).elements()) * value(shape_at(1).shape[1]);
    case ir::OpKind::Fused: {
      double sum = 0;
      for (const ir::NodeId inner : node.body->nodes()) sum += node_flops(*node.body, inner, point);
      return sum;
    }
    default:
      return 0;
  }
}

}  // namespace

double forward_flops(const ir::Module& planned, const ir::Point& point) {
  const ir::Entry* entry = planned.entry("infer");
  if (!entry) return 0;
  double sum = 0;
  for (const ir::NodeId id : entry->graph.nodes()) sum += node_flops(entry->graph, id, point);
  return sum;
}

std::string report_text(const ir::Module& planned, const ir::Point& point,
                        const std::vector<passes::PassRecord>& records) {
  const std::string kind = planned.facts.text("kind");
  std::string text = planned.name + ": " + kind + ", " + std::string(ir::dtype_name(planned.real)) +
                     formatv(", at B={0}, T={1}", point[ir::Symbol::B], point[ir::Symbol::T]).str();
  if (kind == "encoder-decoder") text += formatv(", S={0}", point[ir::Symbol::S]).str();
  text += "\n\n" + parameters_text(planned) + "\n" + memory_text(planned, point) +
          again_text(planned, point) + "\n" + flops_text(planned, point);
  return records.empty() ? text : text + "\n" + passes_text(records);
}

}  // namespace tfc::tools
