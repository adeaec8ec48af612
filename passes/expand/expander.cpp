#include "passes/expand/expander.h"

#include "ir/algorithms.h"
#include "ir/check.h"
#include "ir/dropout.h"
#include "passes/expand/lora.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Symbol;
using ir::Value;

Expander::Expander(ir::Module& module, const ir::Graph& blocks)
    : module_(module), blocks_(blocks), initialiser_(module) {
  result.real = module.real;
  for (NodeId id : blocks.nodes()) {
    if (block(id).op != OpKind::BlockHead) continue;
    if (const std::string tied = attributes(id).text("tied", ""); !tied.empty()) tied_[tied];
  }
}

void Expander::run() {
  const std::vector<NodeId> order = ir::topological_order(blocks_);
  for (NodeId id : order) {  // masks before the floats that they cover
    if (block(id).op == OpKind::Input && block(id).results[0].dtype != module_.real) input(id);
  }
  for (NodeId id : order) {
    place_ = block(id).place;
    shared_ = attributes(id).text("prefix", "");
    layer_ = block(id).name;
    if (block(id).op == OpKind::Input) {
      if (block(id).results[0].dtype == module_.real) input(id);
    } else if (block(id).op != OpKind::BlockLoss) {
      values_[{id, 0}] = expand_block(id);
    }
  }
  for (NodeId id : order) {  // after the experts of all layers, whose balance is a part of the loss
    place_ = block(id).place;
    if (block(id).op == OpKind::BlockLoss) loss(id);
  }
  for (const ir::Output& output : blocks_.outputs)
    result.outputs.push_back({output.name, values_.at(output.value)});
}

/// Hidden states lose what stands at masked positions at once, so that it is never read, in either direction.
void Expander::input(NodeId id) {
  ir::Node node = block(id);
  const std::string name = node.name;
  const ir::Type type = node.results[0];
  Value value{result.add_node(std::move(node), {}), 0};
  if (type.dtype == module_.real && type.rank() == 3 && !name.starts_with("targets")) {  // a loss reads what counts
    const NodeId mask = blocks_.find(type.shape[1] == ir::Dim(Symbol::S) ? "src_mask" : "mask");
    if (mask.valid() && block(mask).op == OpKind::Input) {
      value = masked(value, values_.at({mask, 0}), name + ".real");
    }
  }
  values_[{id, 0}] = value;
}

Value Expander::expand_block(NodeId id) {
  switch (block(id).op) {
    case OpKind::BlockEmbedding:
      return embedding(id);
    case OpKind::BlockAttention:
      return attention(id);
    case OpKind::BlockFfn:
      return ffn(id);
    case OpKind::BlockNorm:
      return norm(id);
    case OpKind::BlockResidual:
      return residual(id);
    case OpKind::BlockLinear:
      return linear_block(id);
    case OpKind::BlockActivation:
      return add(OpKind::Activation, {operand(id, 0)}, {{"kind", attributes(id).text("kind")}},
                 block(id).name);
    case OpKind::BlockMultiply:
      return add(OpKind::Multiply, {operand(id, 0), operand(id, 1)}, {}, block(id).name);
    case OpKind::BlockHead:
      return head(id);
    default:
      ir::compiler_fault("expand met '" + block(id).name + "', a " +
                         std::string(ir::info(block(id).op).text) + ", where only blocks are legal");
  }
}

Value Expander::operand(NodeId id, uint32_t slot) const {
  const Value value = blocks_.operand(id, slot);
  return value.valid() ? values_.at(value) : Value{};
}

Value Expander::declared(const std::string& name, const ir::Dim& tokens) const {
  const NodeId input = blocks_.find(tokens == ir::Dim(Symbol::S) ? "src_" + name : name);
  return input.valid() && block(input).op == OpKind::Input ? values_.at({input, 0}) : Value{};
}

Value Expander::add(OpKind op, const std::vector<Value>& operands, ir::Attributes attributes,
                    std::string name) {
  return {result.add(op, operands, std::move(attributes), own_name(std::move(name)), place_), 0};
}

std::string Expander::own_name(std::string name) const {
  const bool named_by_block = shared_.starts_with("blocks.") || shared_.find(".blocks.") != std::string::npos;
  if (named_by_block && name.starts_with(shared_)) name.replace(0, shared_.size(), layer_);
  return name;
}

int64_t Expander::width(Value value) const {
  const std::optional<int64_t> width = result.type(value).width().constant();
  TFC_CHECK(width, "'" + result.node(value.node).name + "' has a width that is no number");
  return *width;
}

Value Expander::parameter(const std::string& name, const std::vector<int64_t>& shape, ir::Init init,
                          bool joined) {
  if (const auto found = parameters_.find(name); found != parameters_.end()) return found->second;
  declare(name, shape, init, joined);
  return parameter_node(name, shape);
}

Value Expander::joined_parts(const std::string& prefix, int64_t experts, const std::vector<std::string>& parts,
                             const std::vector<int64_t>& shape, ir::Init init) {
  std::string name;
  const auto for_parts = [&](const auto& body) {
    for (int64_t e = 0; e < experts; ++e)
      for (const std::string& part : parts) body(prefix + "." + std::to_string(e) + "." + part);
  };
  for_parts([&](const std::string& part) { name += (name.empty() ? "" : "+") + part; });
  if (const auto found = parameters_.find(name); found != parameters_.end()) return found->second;
  bool joined = false;
  for_parts([&](const std::string& part) {
    declare(part, shape, init, joined);
    joined = true;
  });
  std::vector<int64_t> whole = shape;
  whole[0] *= experts * static_cast<int64_t>(parts.size());
  return parameter_node(name, whole);
}

void Expander::declare(const std::string& name, const std::vector<int64_t>& shape, ir::Init init, bool joined) {
  ir::Parameter parameter;
  parameter.name = name;
  parameter.shape = shape;
  parameter.init = init;
  parameter.decayed = shape.size() >= 2;
  parameter.joins_previous = joined;
  parameter.place = place_;
  module_.parameters.push_back(std::move(parameter));
}

Value Expander::parameter_node(const std::string& name, const std::vector<int64_t>& shape) {
  ir::Node node;
  node.op = OpKind::Param;
  node.name = name;
  node.place = place_;
  node.attributes.set("name", name);
  node.results = {{module_.real, ir::Shape(shape.begin(), shape.end())}};
  return parameters_[name] = {result.add_node(std::move(node), {}), 0};
}

Value Expander::linear(Value x, const std::string& prefix, bool bias) {
  const Value w = existing(prefix + ".weight"), b = bias ? existing(prefix + ".bias") : Value{};
  const Value y = add(OpKind::Linear, {x, w, b}, {}, prefix);
  return is_lora_target(module_.lora, prefix) ? adapted(y, x, prefix) : y;
}

/// y + alpha/r (x A^T) B^T (Hu et al. 2021): two thin products, the second of which adds to y as it is made.
/// The factor stands where there is least to multiply.
Value Expander::adapted(Value y, Value x, const std::string& prefix) {
  const int64_t rank = module_.lora.rank, in = width(x);
  const Value a = parameter(prefix + ".lora_a", {rank, in}, lora_a_init(in));
  const Value b = parameter(prefix + ".lora_b", {width(y), rank}, kZeros);
  const Value down = add(OpKind::Linear, {x, a}, {}, prefix + ".lora_a");
  const Value inner = add(OpKind::Scale, {down}, {{"factor", lora_scale(module_.lora)}}, prefix + ".lora");
  const Value up = add(OpKind::Linear, {inner, b}, {}, prefix + ".lora_b");
  return add(OpKind::Residual, {y, up}, {{"scale", 1.0}}, prefix + ".adapted");
}

Value Expander::dropout_keys(const ir::Type& rows) {
  Value& keys = dropout_keys_[rows.shape[1].text()];
  if (keys.valid()) return keys;
  NodeId call = result.find("dropout");
  if (!call.valid()) {
    ir::Node node;
    node.op = OpKind::Input;
    node.name = "dropout";
    node.place = place_;
    node.attributes.set("name", node.name);
    node.results = {{ir::DType::I32, {ir::Dim(ir::kDropoutWords)}}};
    call = result.add_node(std::move(node), {});
  }
  return keys = add(OpKind::DropoutKeys, {{call, 0}}, {{"batch", rows.shape[0]}, {"tokens", rows.shape[1]}},
                    "dropout." + rows.shape[1].text());
}

Value Expander::dropped(Value x, double p, std::string name) {
  return p == 0 ? x : dropped(x, p, std::move(name), dropout_keys(result.type(x)));
}

Value Expander::dropped(Value x, double p, std::string name, Value keys) {
  const Value kept = add(OpKind::Dropout, {x, keys}, {{"p", p}, {"place", name}}, name);
  result.edit(kept.node).attributes.set("place", result.node(kept.node).name);  // unique, as names are
  return kept;
}

Value Expander::any_real(Value mask, std::string name) {
  return mask.valid() ? add(OpKind::AnyReal, {mask}, {}, std::move(name)) : mask;
}

Value Expander::masked(Value x, Value mask, std::string name) {
  return mask.valid() ? add(OpKind::MaskRows, {x, mask}, {}, std::move(name)) : x;
}

}  // namespace tfc::passes
