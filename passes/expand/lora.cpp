#include "passes/expand/lora.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/GlobPattern.h>

#include <algorithm>
#include <cmath>

namespace tfc::passes {
namespace {

using llvm::StringRef;

constexpr StringRef kWildcards = "*?[{", kWeight = ".weight", kA = ".lora_a", kB = ".lora_b";

bool is_adapter(StringRef parameter) { return parameter.ends_with(kA) || parameter.ends_with(kB); }

bool matches(StringRef target, StringRef linear) {
  target.consume_back(kWeight);
  if (target.find_first_of(kWildcards) != StringRef::npos) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(target);
    if (glob) return glob->match(linear);
    llvm::consumeError(glob.takeError());  // matches nothing, which settle_lora reports
    return false;
  }
  return linear == target || linear.ends_with("." + target.str());
}

bool names_an_adapter(const ir::Module& module, StringRef target) {
  const auto is_adapted = [&](const ir::Parameter& parameter) {
    StringRef linear = parameter.name;
    return linear.consume_back(kA) && matches(target, linear);
  };
  return std::any_of(module.parameters.begin(), module.parameters.end(), is_adapted);
}

/// "'q', 'k', 'up'": the last parts of the names of weights that may have an adapter.
std::string ends_of_weights(const ir::Module& module, std::vector<std::string>& names) {
  std::string text;
  for (const ir::Parameter& parameter : module.parameters) {
    StringRef linear = parameter.name;
    if (parameter.shape.size() != 2 || !linear.consume_back(kWeight) || !linear.contains('.')) continue;
    const std::string end = linear.rsplit('.').second.str();
    if (std::find(names.begin(), names.end(), end) != names.end()) continue;
    names.push_back(end);
    text += (text.empty() ? "'" : ", '") + end + "'";
  }
  return text;
}

}  // namespace

bool is_lora_target(const ir::Lora& lora, std::string_view linear) {
  return lora.rank > 0 &&
         std::any_of(lora.targets.begin(), lora.targets.end(),
                     [&](const ir::Freeze& target) { return matches(target.pattern, linear); });
}

ir::Init lora_a_init(int64_t in) {
  return {ir::Init::Kind::Uniform, 1.0 / std::sqrt(static_cast<double>(in))};
}

void settle_lora(ir::Module& module, PassContext& context) {
  if (module.lora.rank == 0) return;
  for (const ir::Freeze& target : module.lora.targets) {
    if (names_an_adapter(module, target.pattern)) continue;
    std::vector<std::string> names;
    const std::string known = ends_of_weights(module, names);
    ir::Diagnostic& error =
        context.diagnostics.error(target.place, "lora: no weight is named by '" + target.pattern + "'");
    const std::string near = ir::nearest_name(target.pattern, names);
    error.notes.push_back(near.empty() ? "names of weights end in " + known : "did you mean '" + near + "'?");
  }
  int64_t adapters = 0, numbers = 0;
  for (ir::Parameter& parameter : module.parameters) {
    parameter.frozen = !is_adapter(parameter.name);
    if (parameter.frozen) continue;
    ++adapters;
    numbers += parameter.elements();
  }
  context.diagnostics.remark("expand", module.lora.place,
                             std::to_string(adapters / 2) + " adapters of rank " +
                                 std::to_string(module.lora.rank) + ", " + std::to_string(numbers) +
                                 " numbers, are all that is trained");
  module.facts.set("lora_scale", lora_scale(module.lora));
  module.lora = {};
}

}  // namespace tfc::passes
