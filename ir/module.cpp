#include "ir/module.h"

#include <algorithm>

namespace tfc::ir {
namespace {

constexpr std::string_view kPhases[] = {"blocks", "ops", "joint", "fused", "planned"};
constexpr int64_t kParameterAlignment = 16;  // elements: 64 bytes of f32

int64_t aligned(int64_t offset) {
  return (offset + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
}

}  // namespace

std::string_view phase_name(Phase phase) { return kPhases[static_cast<int>(phase)]; }

std::optional<Phase> phase_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kPhases); ++i)
    if (kPhases[i] == name) return static_cast<Phase>(i);
  return std::nullopt;
}

int64_t Parameter::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

const Entry* Module::entry(std::string_view wanted) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == wanted; });
  return found == entries.end() ? nullptr : &*found;
}

Entry* Module::entry(std::string_view wanted) {
  return const_cast<Entry*>(static_cast<const Module*>(this)->entry(wanted));
}

const Parameter* Module::parameter(std::string_view wanted) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& p) { return p.name == wanted; });
  return found == parameters.end() ? nullptr : &*found;
}

std::unordered_map<std::string_view, size_t> parameter_numbers(const Module& module) {
  std::unordered_map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < module.parameters.size(); ++i) numbers.emplace(module.parameters[i].name, i);
  return numbers;
}

int64_t Module::parameter_count() const {
  int64_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.elements();
  return sum;
}

int64_t Module::parameter_block() const {
  int64_t end = 0;
  for (const Parameter& parameter : parameters) end = std::max(end, parameter.offset + parameter.elements());
  return aligned(end);
}

int64_t Module::trained_block() const {
  int64_t end = std::min(kParameterAlignment, parameter_block());
  for (const Parameter& parameter : parameters) {
    if (!parameter.frozen) end = std::max(end, parameter.offset + parameter.elements());
  }
  return aligned(end);
}

int64_t Module::gradient_block() const {
  constexpr std::string_view prefix = "grads:";
  for (const Entry& entry : entries) {
    for (const Output& output : entry.graph.outputs) {
      if (!output.name.starts_with(prefix)) continue;
      const Parameter* first = parameter(split_joined_name(output.name.substr(prefix.size())).front());
      if (first && first->frozen) return parameter_block();
    }
  }
  return trained_block();
}

void lay_out_parameters(Module& module) {
  int64_t end = 0;
  for (const bool frozen : {false, true}) {
    for (Parameter& parameter : module.parameters) {
      if (parameter.frozen != frozen) continue;
      parameter.offset = parameter.joins_previous ? end : aligned(end);
      end = parameter.offset + parameter.elements();
    }
  }
}

std::vector<std::string> split_joined_name(std::string_view name) {
  std::vector<std::string> parts;
  while (true) {
    const size_t plus = name.find('+');
    parts.emplace_back(name.substr(0, plus));
    if (plus == std::string_view::npos) return parts;
    name.remove_prefix(plus + 1);
  }
}

}  // namespace tfc::ir
