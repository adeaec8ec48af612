#include "passes/plan/storage.h"

#include <algorithm>

#include "ir/check.h"
#include "ir/edits.h"
#include "ir/taps.h"
#include "passes/plan/schedule.h"

namespace tfc::passes {

using ir::Arg;
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpKind;
using ir::Space;
using ir::Type;
using ir::Value;

namespace {

Arg pointer(Space space, int index, ir::Dim offset = 0) {
  return {Arg::Kind::Pointer, space, index, std::move(offset)};
}

std::optional<Space> state_space(std::string_view name) {
  for (Space space : {Space::Params, Space::Grads, Space::Moment1, Space::Moment2, Space::Cache, Space::Edits}) {
    if (ir::space_name(space) == name) return space;
  }
  return std::nullopt;
}

/// "grads:NAME" -> {"grads", "NAME"}; nothing for outputs that go to the caller.
std::optional<std::pair<std::string, std::string>> state_of_output(const std::string& output) {
  const size_t colon = output.find(':');
  if (colon == std::string::npos || !state_space(output.substr(0, colon))) return std::nullopt;
  return std::pair(output.substr(0, colon), output.substr(colon + 1));
}

bool same_memory(const Location& a, const Location& b) {
  return a.pointer.space == b.pointer.space && a.pointer.index == b.pointer.index &&
         a.pointer.value == b.pointer.value && a.stride == b.stride;
}

}  // namespace

Storage::Storage(const ir::Module& module, const CacheLayout& cache, const Graph& graph, ir::Plan& plan)
    : module_(module),
      parameter_numbers_(ir::parameter_numbers(module)),
      edited_names_(ir::edited_names(module)),
      cache_(cache),
      graph_(graph),
      plan_(plan),
      placed_concats_(graph.node_capacity()) {
  for (const ir::Output& output : graph.outputs) ++output_count_[output.value];
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::State) read_spaces_.insert(*state_space(node.attributes.text("space")));
  }
  add_externals();
  place_concats();
  place_in_results();
  place_outputs();
}

void Storage::add_externals() {
  for (NodeId id : graph_.nodes()) {
    const Node& node = graph_.node(id);
    if (node.op != OpKind::Input) continue;
    inputs_[node.name] = static_cast<int>(plan_.externals.size());
    plan_.externals.push_back({node.name, false, node.results[0]});
  }
}

void Storage::place_outputs() {
  for (const ir::Output& output : graph_.outputs) {
    if (ir::is_tap(output.name)) continue;
    int external = -1;
    if (!state_of_output(output.name)) {
      external = static_cast<int>(plan_.externals.size());
      plan_.externals.push_back({output.name, true, graph_.type(output.value)});
    }
    place_output(output, external);
  }
  for (const ir::Output& output : graph_.outputs) {  // after what other memory prescribes
    if (ir::is_tap(output.name)) place_tap(output);
  }
}

/// A buffer of its own, dense whatever the value is a view of.
void Storage::place_tap(const ir::Output& output) {
  const Type& type = graph_.type(output.value);
  const Arg buffer = new_buffer(output.name, type.bytes());
  plan_.taps.push_back(
      {std::string(ir::tapped_name(output.name)), ir::is_tap_gradient(output.name), type, buffer.index});
  place(output.value, whole(buffer, type));
}

void Storage::place_output(const ir::Output& output, int external) {
  const Type& type = graph_.type(output.value);
  Location to;
  if (external >= 0) {
    to = whole(pointer(Space::External, external), type);
  } else {
    const auto [space, name] = *state_of_output(output.name);
    to = whole(state_memory(space, name), type);
  }
  place(output.value, to);
}

/// Straight into its place where a kernel makes it for no other place; else a copy.
void Storage::place(Value value, const Location& to) {
  if (has_own_storage(value) && !places_.contains(value) && !read_spaces_.contains(to.pointer.space)) {
    places_[value] = to;
  } else if (!same_memory(locate(value), to)) {
    const bool leaf = ir::info(graph_.node(value.node).op).op_class == ir::OpClass::Leaf;
    copies_.push_back({value, to, leaf || read_spaces_.contains(to.pointer.space)});
  }
}

/// A kernel makes the value, in memory that nothing else prescribes.
bool Storage::has_own_storage(Value value) const {
  const Node& node = graph_.node(value.node);
  const bool made = ir::info(node.op).op_class != ir::OpClass::Leaf && node.op != OpKind::Split;
  return made && donated_operand(node, value.result) < 0 && !columns_.contains(value);
}

bool Storage::can_be_placed(Value value) const {
  return value.valid() && has_own_storage(value) && graph_.uses(value).size() == 1 &&
         !output_count_.contains(value);
}

void Storage::place_concats() {
  for (NodeId id : graph_.nodes()) {
    if (graph_.node(id).op != OpKind::Concat) continue;
    const std::vector<Value> operands = graph_.operands(id);
    bool all = true;
    for (Value operand : operands) all = all && can_be_placed(operand);
    if (!all) continue;
    placed_concats_[id.index] = true;
    int64_t offset = 0;
    for (Value operand : operands) {
      columns_[operand] = {Value{id, 0}, offset};
      offset += *graph_.type(operand).width().constant();
    }
  }
}

namespace {

/// Does the kernel read each element of its first operand before it writes that element, and no other?
bool may_overwrite_operand(OpKind op) {
  switch (op) {
    case OpKind::Add:
    case OpKind::Multiply:
    case OpKind::Scale:
    case OpKind::Activation:
    case OpKind::ActivationGrad:
    case OpKind::Dropout:
    case OpKind::Residual:
    case OpKind::Edit:
    case OpKind::EditGrad:
    case OpKind::MaskRows:
    case OpKind::AddRows:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Storage::place_in_results() {
  for (NodeId id : graph_.nodes()) {
    const Node& node = graph_.node(id);
    if (!may_overwrite_operand(node.op) || node.donates >= 0) continue;
    const Value operand = graph_.operand(id, 0);
    if (!can_be_placed(operand) || graph_.type(operand) != node.results[0]) continue;
    if (!used({id, 0}) || !node.results[0].width().constant()) continue;
    columns_[operand] = {Value{id, 0}, 0};
  }
}

bool Storage::used(Value value) const {
  return value.valid() && (output_count_.contains(value) || !graph_.uses(value).empty());
}

Location Storage::whole(Arg memory, const Type& type) const {
  const int64_t width = type.width().constant().value_or(0);
  return {std::move(memory), width, width};
}

Arg Storage::external_of_input(const std::string& name) const {
  return pointer(Space::External, inputs_.at(name));
}

Arg Storage::state_memory(const std::string& space_text, const std::string& name) const {
  const std::optional<Space> space = state_space(space_text);
  TFC_CHECK(space, "no state lives in the space '" + space_text + "'");
  if (*space == Space::Cache) {
    const CacheTensor* tensor = cache_.find(name);
    TFC_CHECK(tensor, "the cache has no tensor '" + name + "'");
    return pointer(*space, 0, tensor->offset);
  }
  if (*space == Space::Edits) {
    const auto number = std::find(edited_names_.begin(), edited_names_.end(), ir::edited_name(name)) - edited_names_.begin();
    return pointer(*space, 0, number * ir::kEditBytes);
  }
  if (name == "*") return pointer(*space, 0);
  const std::string first = ir::split_joined_name(name).front();
  const auto number = parameter_numbers_.find(first);
  TFC_CHECK(number != parameter_numbers_.end(), "no parameter is named '" + first + "'");
  return pointer(*space, 0, module_.parameters[number->second].offset * ir::dtype_bytes(module_.real));
}

Arg Storage::new_buffer(std::string name, ir::Dim bytes) {
  ir::Buffer buffer;
  buffer.name = std::move(name);
  buffer.bytes = std::move(bytes);
  plan_.buffers.push_back(std::move(buffer));
  return pointer(Space::Workspace, static_cast<int>(plan_.buffers.size()) - 1);
}

/// Memory that another value has prescribed: leaves, views, donations, places in a concat.
std::optional<Location> Storage::shared(Value value) {
  const Node& node = graph_.node(value.node);
  const Type& type = graph_.type(value);
  if (node.op == OpKind::Input) return whole(external_of_input(node.name), type);
  if (node.op == OpKind::Param) return whole(state_memory("params", node.attributes.text("name")), type);
  if (node.op == OpKind::State) {
    return whole(state_memory(node.attributes.text("space"), node.attributes.text("name")), type);
  }
  if (node.op == OpKind::Split) {
    Location place = locate(graph_.operand(value.node, 0));
    int64_t column = 0;
    for (uint32_t i = 0; i < value.result; ++i) column += *node.results[i].width().constant();
    place.pointer = Lowering::advance(place.pointer, column * ir::dtype_bytes(type.dtype));
    place.width = *type.width().constant();
    return place;
  }
  if (const auto column = columns_.find(value); column != columns_.end()) {
    Location place = locate(column->second.whole);
    place.pointer = Lowering::advance(place.pointer, column->second.offset * ir::dtype_bytes(type.dtype));
    place.width = *type.width().constant();
    return place;
  }
  if (const int slot = donated_operand(node, value.result); slot >= 0) {
    return locate(graph_.operand(value.node, static_cast<uint32_t>(slot)));
  }
  return std::nullopt;
}

Location Storage::find(Value value) {
  if (std::optional<Location> place = shared(value)) return *place;
  const Node& node = graph_.node(value.node);
  std::string name = node.name;
  if (value.result > 0) name += "." + std::to_string(value.result);
  return whole(new_buffer(std::move(name), graph_.type(value).bytes()), graph_.type(value));
}

Location Storage::locate(Value value) {
  if (!value.valid() || !used(value)) return {pointer(Space::Workspace, -1), 0, 0};
  if (const auto found = places_.find(value); found != places_.end()) return found->second;
  const Location place = find(value);
  places_[value] = place;
  return place;
}

}  // namespace tfc::passes
