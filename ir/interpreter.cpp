#include "ir/interpreter.h"

#include <algorithm>

#include "ir/algorithms.h"
#include "ir/check.h"
#include "ir/taps.h"

namespace tfc::ir {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

constexpr Space kBlocks[] = {Space::Params, Space::Grads, Space::Moment1, Space::Moment2};

}  // namespace

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype(dtype), shape(std::move(shape)), data(static_cast<size_t>(product(this->shape))) {}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, std::vector<double> data)
    : dtype(dtype), shape(std::move(shape)), data(std::move(data)) {
  TFC_CHECK(product(this->shape) == elements(), "a tensor's shape and its number of elements disagree");
}

std::vector<int64_t> shape_at(const Type& type, const Point& point) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.at(point));
  return shape;
}

Interpreter::Interpreter(const Module& module, const Point& point) : point(point), module_(module) {
  for (const Space space : kBlocks) blocks_[space].resize(static_cast<size_t>(module.parameter_block()));
  for (const Parameter& parameter : module.parameters)
    extent_[parameter.name] = {parameter.offset, parameter.elements()};
}

std::vector<double>& Interpreter::block(Space space) {
  const auto found = blocks_.find(space);
  TFC_CHECK(found != blocks_.end(),
            "space '" + std::string(space_name(space)) + "' is not a block of parameters");
  return found->second;
}

/// Offset and length of "a", of the neighbours "a+b", or of "*".
static std::pair<int64_t, int64_t> extent(const std::map<std::string, std::pair<int64_t, int64_t>>& known,
                                          const std::string& name, int64_t whole) {
  if (name == "*") return {0, whole};
  int64_t begin = -1, end = 0;
  for (const std::string& part : split_joined_name(name)) {
    const auto found = known.find(part);
    TFC_CHECK(found != known.end(), "there is no parameter '" + part + "'");
    const auto [offset, elements] = found->second;
    TFC_CHECK(begin < 0 || offset == end, "'" + name + "' joins parameters that are not neighbours");
    if (begin < 0) begin = offset;
    end = offset + elements;
  }
  return {begin, end - begin};
}

std::vector<double> Interpreter::read(Space space, const std::string& name) {
  const std::vector<double>& memory = block(space);
  const auto [offset, length] = extent(extent_, name, module_.trained_block());
  return {memory.begin() + offset, memory.begin() + offset + length};
}

void Interpreter::write(Space space, const std::string& name, const std::vector<double>& elements) {
  std::vector<double>& memory = block(space);
  const auto [offset, length] = extent(extent_, name, module_.trained_block());
  TFC_CHECK(
      length == static_cast<int64_t>(elements.size()),
      "'" + name + "' has " + std::to_string(length) + " elements, got " + std::to_string(elements.size()));
  std::copy(elements.begin(), elements.end(), memory.begin() + offset);
}

static Space space_from_name(std::string_view name) {
  for (const Space space : {Space::Params, Space::Grads, Space::Moment1, Space::Moment2, Space::Cache, Space::Edits})
    if (space_name(space) == name) return space;
  compiler_fault("'" + std::string(name) + "' is no space that state lives in");
}

Tensor Interpreter::leaf(const Node& node, const std::vector<Tensor>* arguments) {
  const Type& type = node.results[0];
  Tensor tensor(type.dtype, shape_at(type, point));
  switch (node.op) {
    case OpKind::Zeros:
      return tensor;
    case OpKind::Input: {
      const std::string& name = node.attributes.text("name");
      const auto given = inputs.find(name);
      TFC_CHECK(given != inputs.end(), "input '" + name + "' was not given");
      TFC_CHECK(given->second.shape == tensor.shape,
                "input '" + name + "' has another shape than " + type.text() + " at this point");
      return given->second;
    }
    case OpKind::Param:
      tensor.data = read(Space::Params, node.attributes.text("name"));
      break;
    case OpKind::State: {
      const std::string& name = node.attributes.text("name");
      const Space space = space_from_name(node.attributes.text("space"));
      if (space == Space::Cache) return cache.try_emplace(name, tensor).first->second;
      if (space == Space::Edits) {
        const auto set = edits.find(name);
        if (set == edits.end()) return tensor;
        TFC_CHECK(set->second.shape == tensor.shape, "the edit '" + name + "' has another shape than " + type.text());
        return set->second;
      }
      tensor.data = read(space, name);
      break;
    }
    case OpKind::Argument: {
      const size_t index = static_cast<size_t>(node.attributes.integer("index"));
      TFC_CHECK(arguments && index < arguments->size(), "%" + node.name + " is an argument of nothing");
      return (*arguments)[index];
    }
    default:
      compiler_fault("%" + node.name + " is not a leaf");
  }
  TFC_CHECK(product(tensor.shape) == tensor.elements(), "%" + node.name + " has " +
                                                            std::to_string(tensor.elements()) +
                                                            " elements, its type is " + type.text());
  return tensor;
}

void Interpreter::run_node(const Graph& graph, NodeId id, const std::vector<Tensor>* arguments,
                           Values& values) {
  const Node& node = graph.node(id);
  std::vector<Tensor>& results = values[id.index];
  if (info(node.op).op_class == OpClass::Leaf) {
    results.push_back(leaf(node, arguments));
    return;
  }
  const std::vector<Value> operands = graph.operands(id);
  if (node.op == OpKind::Fused) {
    std::vector<Tensor> inner;  // what the body's argument leaves stand for
    for (const Value operand : operands)
      inner.push_back(operand.valid() ? values[operand.node.index][operand.result] : Tensor());
    Values body_values;
    run_graph(*node.body, &inner, body_values);
    for (const Output& output : node.body->outputs)
      results.push_back(body_values[output.value.node.index][output.value.result]);
    return;
  }
  for (const Type& type : node.results) results.emplace_back(type.dtype, shape_at(type, point));
  std::vector<const Tensor*> tensors;
  for (const Value operand : operands)
    tensors.push_back(operand.valid() ? &values[operand.node.index][operand.result] : nullptr);
  evaluate(node.op, EvalContext{tensors, results, node.attributes, &module_});
}

void Interpreter::run_graph(const Graph& graph, const std::vector<Tensor>* arguments, Values& values) {
  values.assign(graph.node_capacity(), {});
  for (const NodeId id : topological_order(graph)) run_node(graph, id, arguments, values);
}

void Interpreter::run(const Graph& graph) {
  last_ = &graph;
  run_graph(graph, nullptr, values_);
}

const Tensor& Interpreter::value(Value value) const {
  TFC_CHECK(
      value.valid() && value.node.index < values_.size() && value.result < values_[value.node.index].size(),
      "no such value was computed");
  return values_[value.node.index][value.result];
}

const Tensor& Interpreter::output(const std::string& name) const {
  TFC_CHECK(last_ != nullptr, "nothing has been run");
  const Value found = last_->output(name);
  TFC_CHECK(found.valid(), "the graph has no output '" + name + "'");
  return value(found);
}

void Interpreter::commit() {
  TFC_CHECK(last_ != nullptr, "nothing has been run");
  for (const Output& output : last_->outputs) {
    const size_t colon = output.name.find(':');
    if (colon == std::string::npos || is_tap(output.name)) continue;
    const Space space = space_from_name(std::string_view(output.name).substr(0, colon));
    const std::string name = output.name.substr(colon + 1);
    if (space == Space::Cache) {
      cache[name] = value(output.value);
    } else {
      write(space, name, value(output.value).data);
    }
  }
}

}  // namespace tfc::ir
