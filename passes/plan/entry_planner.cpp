#include "passes/plan/entry_planner.h"

#include "ir/check.h"
#include "passes/plan/schedule.h"
#include "passes/row_mask.h"

namespace tfc::passes {

using ir::Arg;
using ir::NodeId;
using ir::OpKind;
using ir::Record;
using ir::Value;

namespace {

Padding padding_for(ir::PaddedRows reads) {
  switch (reads) {
    case ir::PaddedRows::Apart:
      return Padding::Left;
    case ir::PaddedRows::Zeros:
      return Padding::Zeroed;
    case ir::PaddedRows::Read:
      return Padding::Made;
  }
  ir::compiler_fault("an operation does not say what it does with padding");
}

Padding padding_of(const ir::Graph& graph) {
  Padding result = Padding::Left;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const Padding needs = node.op == OpKind::Fused ? padding_of(*node.body) : padding_for(ir::info(node.op).padding);
    if (needs == Padding::Made) return needs;
    if (needs == Padding::Zeroed) result = needs;
  }
  return result;
}

}  // namespace

EntryPlanner::EntryPlanner(ir::Module& module, const CacheLayout& cache, const ir::Graph& graph,
                           const ir::Point& point)
    : module_(module), graph_(graph), point_(point), storage_(module, cache, graph, plan_), padding_(padding_of(graph)) {
  for (const Storage::Copy& copy : storage_.copies()) {
    if (!copy.at_end) copies_.emplace(copy.value.node, copy);
  }
}

ir::Plan EntryPlanner::run() {
  for (NodeId id : schedule(graph_, point_)) {
    lower(id);
    const auto [begin, end] = copies_.equal_range(id);
    for (auto copy = begin; copy != end; ++copy) copy_output(copy->second);
  }
  for (const Storage::Copy& copy : storage_.copies()) {
    if (copy.at_end) copy_output(copy);
  }
  set_lifetimes(plan_);
  return std::move(plan_);
}

void EntryPlanner::lower(NodeId id) {
  const ir::Node& node = graph_.node(id);
  if (node.op == OpKind::Split) return;  // its results are views
  if (node.op == OpKind::Concat && storage_.concat_is_in_place(id)) return;
  current_ = id;
  fill_zeros(id);
  record_name_ = node.name;
  switch (node.op) {
#define TFC_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                      \
    return lower_##name(*this);
#define TFC_GRAD_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                           \
    return lower_##name(*this);
#include "ir/ops.def"
    case OpKind::Fused:
      return lower_fused(*this);
    default:
      ir::compiler_fault("'" + node.name + "' cannot be planned: " + std::string(ir::info(node.op).text));
  }
}

/// A leaf of zeros gets its memory when the first node reads it.
void EntryPlanner::fill_zeros(NodeId id) {
  for (Value operand : graph_.operands(id)) {
    if (!operand.valid() || graph_.node(operand.node).op != OpKind::Zeros) continue;
    if (!filled_.insert(operand.node).second) continue;
    record_name_ = graph_.node(operand.node).name;
    write_zeros(*this, locate(operand), graph_.type(operand));
  }
}

void EntryPlanner::copy_output(const Storage::Copy& copy) {
  current_ = copy.value.node;
  record_name_ = graph_.node(current_).name + ".copy";
  if (graph_.node(current_).op == OpKind::Zeros) {
    write_zeros(*this, copy.to, graph_.type(copy.value));
  } else {
    write_copy(*this, copy.to, locate(copy.value), graph_.type(copy.value));
  }
}

/// The mask of a value's rows; a null pointer where there is none.
Arg EntryPlanner::mask_of(Value value) {
  const Value mask = row_mask(graph_, graph_.type(value));
  return mask.valid() ? locate(mask).pointer : Arg{Arg::Kind::Pointer, ir::Space::Workspace, -1, 0};
}

Arg EntryPlanner::real_rows(Value value) {
  return padding_ == Padding::Left ? mask_of(value) : Arg{Arg::Kind::Pointer, ir::Space::Workspace, -1, 0};
}

Lowering::ProductRows EntryPlanner::product_rows(Value value) {
  if (padding_ == Padding::Made) return {};
  return {mask_of(value), padding_ == Padding::Zeroed};
}

Arg EntryPlanner::temporary(const std::string& name, ir::Dim bytes) {
  return storage_.new_buffer(record_name_ + ":" + name, std::move(bytes));
}

Arg EntryPlanner::constant(const std::string& name, const std::vector<double>& values) {
  size_t index = 0;
  while (index < module_.constants.size() && module_.constants[index].name != name) ++index;
  if (index == module_.constants.size()) module_.constants.push_back({name, values});
  TFC_CHECK(module_.constants[index].values == values, "two constants are named '" + name + "'");
  return {Arg::Kind::Pointer, ir::Space::Constant, static_cast<int>(index), 0};
}

void EntryPlanner::call(Record record) {
  record.kind = Record::Kind::Call;
  record.node = record_name_;
  plan_.records.push_back(std::move(record));
}

void EntryPlanner::loop(ir::Dim iterations, const std::function<void()>& body) {
  TFC_CHECK(!in_loop_, "'" + record_name_ + "' nests loops");
  in_loop_ = true;
  Record begin;
  begin.kind = Record::Kind::LoopBegin;
  begin.node = record_name_;
  begin.tasks = std::move(iterations);
  Record end;
  end.kind = Record::Kind::LoopEnd;
  end.node = record_name_;
  plan_.records.push_back(std::move(begin));
  body();
  plan_.records.push_back(std::move(end));
  in_loop_ = false;
}

namespace {

/// For each record, the first and last record of the loop around it, or itself.
std::vector<std::pair<int, int>> loop_spans(const ir::Plan& plan) {
  std::vector<std::pair<int, int>> spans(plan.records.size());
  int begin = -1;
  for (int i = 0; i < static_cast<int>(plan.records.size()); ++i) {
    const Record::Kind kind = plan.records[i].kind;
    if (kind == Record::Kind::LoopBegin) begin = i;
    spans[i] = {i, i};
    if (kind == Record::Kind::LoopEnd) {
      for (int j = begin; j <= i; ++j) spans[j] = {begin, i};
      begin = -1;
    }
  }
  return spans;
}

}  // namespace

void set_lifetimes(ir::Plan& plan) {
  const std::vector<std::pair<int, int>> spans = loop_spans(plan);
  for (ir::Buffer& buffer : plan.buffers) buffer.first = buffer.last = -1;
  for (size_t i = 0; i < plan.records.size(); ++i) {
    for (const Arg& arg : plan.records[i].args) {
      if (arg.kind != Arg::Kind::Pointer || arg.space != ir::Space::Workspace || arg.index < 0) continue;
      ir::Buffer& buffer = plan.buffers[static_cast<size_t>(arg.index)];
      if (buffer.first < 0) buffer.first = spans[i].first;
      buffer.last = std::max(buffer.last, spans[i].second);
    }
  }
  for (ir::Buffer& buffer : plan.buffers) {
    if (buffer.first < 0) buffer = {buffer.name, 0, 0, 0, -1};  // located, but passed to no kernel
  }
  for (const ir::Tap& tap : plan.taps)
    plan.buffers[static_cast<size_t>(tap.buffer)].last = static_cast<int>(plan.records.size()) - 1;
}

}  // namespace tfc::passes
