#include "passes/expand/freeze.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/GlobPattern.h>

#include <algorithm>

namespace tfc::passes {
namespace {

using llvm::StringRef;

constexpr StringRef kEmbedding[] = {"tok_emb",     "src_emb",      "tgt_emb",     "pos_emb",   "src_pos_emb",
                                    "tgt_pos_emb", "type_emb",     "emb_norm",    "patch_emb", "cls_token",
                                    "emb_proj",    "src_emb_proj", "tgt_emb_proj"};
constexpr StringRef kFinalNorms[] = {"final_norm", "encoder.final_norm", "decoder.final_norm"};
constexpr StringRef kWildcards = "*?[{";

/// "3" against "3", "0-5" against a number in that range.
bool matches_part(StringRef pattern, StringRef part) {
  if (pattern == part) return true;
  const auto [from, to] = pattern.split('-');
  unsigned first = 0, last = 0, number = 0;
  if (from.getAsInteger(10, first) || to.getAsInteger(10, last) || part.getAsInteger(10, number))
    return false;
  return first <= number && number <= last;
}

/// The name itself or what it lies in, part by part.
bool is_in(StringRef pattern, StringRef name) {
  llvm::SmallVector<StringRef, 8> wanted, parts;
  pattern.split(wanted, '.');
  name.split(parts, '.');
  return wanted.size() <= parts.size() &&
         std::equal(wanted.begin(), wanted.end(), parts.begin(), matches_part);
}

template <size_t n>
bool is_in_any(const StringRef (&patterns)[n], StringRef name) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [&](StringRef pattern) { return is_in(pattern, name); });
}

class Matcher {
 public:
  explicit Matcher(const std::string& pattern) : pattern_(pattern) {
    if (StringRef(pattern).find_first_of(kWildcards) == StringRef::npos) return;
    is_glob_ = true;
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern_);
    if (glob) {
      glob_ = std::move(*glob);
    } else {
      wrong = llvm::toString(glob.takeError());
    }
  }

  std::string wrong;  // why it is no glob; ""

  bool operator()(StringRef name) const {
    if (is_glob_) return wrong.empty() && glob_.match(name);
    if (pattern_ == "embedding") return is_in_any(kEmbedding, name);
    if (pattern_ == "final_norm") return is_in_any(kFinalNorms, name);
    return is_in(pattern_, name);
  }

 private:
  const std::string& pattern_;
  bool is_glob_ = false;
  llvm::GlobPattern glob_;
};

/// "embedding", "encoder.layers.0-5", "head": what can be frozen as a whole, in order.
std::vector<std::string> parts_of(const ir::Module& module) {
  constexpr StringRef layers = "layers.";
  std::vector<std::string> parts;
  for (const ir::Parameter& parameter : module.parameters) {
    const StringRef name = parameter.name;
    const size_t word = name.find(layers);
    const std::string stack = name.take_front(word == StringRef::npos ? 0 : word + layers.size()).str();
    const StringRef number = name.drop_front(stack.size()).split('.').first;
    if (const size_t shared = name.find("blocks."); shared != StringRef::npos) {  // "blocks.NAME" as a whole
      const std::string block = name.take_front(name.find('.', shared + 7)).str();
      if (std::find(parts.begin(), parts.end(), block) == parts.end()) parts.push_back(block);
      continue;
    }
    std::string part = is_in_any(kEmbedding, name) ? "embedding" : name.rsplit('.').first.str();
    if (!stack.empty()) part = stack + (number == "0" ? "0" : "0-" + number.str());
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const std::string& known) {
      return known == part || (!stack.empty() && StringRef(known).starts_with(stack));
    });
    if (same == parts.end()) {
      parts.push_back(part);
    } else {
      *same = part;  // one more layer of the stack
    }
  }
  return parts;
}

std::string parts_text(const ir::Module& module) {
  const std::vector<std::string> parts = parts_of(module);
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "'" : ", '") + part + "'";
  return text;
}

void refuse(const ir::Module& module, const ir::Freeze& freeze, const std::string& wrong,
            ir::Diagnostics& diagnostics) {
  ir::Diagnostic& error = diagnostics.error(
      freeze.place, wrong.empty() ? "freeze: no parameter is named by '" + freeze.pattern + "'"
                                  : "freeze: '" + freeze.pattern + "' is no glob: " + wrong);
  std::vector<std::string> names = {"embedding"};
  for (const ir::Parameter& parameter : module.parameters) names.push_back(parameter.name);
  const std::string near = ir::nearest_name(freeze.pattern, names);
  if (!near.empty()) error.notes.push_back("did you mean '" + near + "'?");
  const bool tied = freeze.pattern == "head" && !module.parameter("head.weight");
  if (tied && module.facts.text("head", "none") == "lm") {
    error.notes.push_back("the head is the token table, which 'embedding' freezes");
  } else {
    error.notes.push_back("the model's parts are " + parts_text(module));
  }
}

/// Parameters that a graph reads as one matrix, as experts' are, are frozen together or not at all.
void refuse_parts(const ir::Module& module, ir::Diagnostics& diagnostics) {
  const ir::Graph& graph = module.entry("model")->graph;
  const auto numbers = ir::parameter_numbers(module);
  for (ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op != ir::OpKind::Param) continue;
    const std::vector<std::string> names = ir::split_joined_name(graph.node(id).attributes.text("name"));
    const auto is_frozen = [&](const std::string& name) { return module.parameters[numbers.at(name)].frozen; };
    const auto frozen = std::find_if(names.begin(), names.end(), is_frozen);
    const auto moving = std::find_if_not(names.begin(), names.end(), is_frozen);
    if (frozen == names.end() || moving == names.end()) continue;
    const auto freeze = std::find_if(module.freezes.begin(), module.freezes.end(), [&](const ir::Freeze& one) {
      return Matcher(one.pattern)(*frozen);
    });
    diagnostics.error(freeze->place, "not supported yet: freezing '" + *frozen + "' without '" + *moving +
                                         "': the experts of a layer are one matrix");
    return;
  }
}

}  // namespace

void apply_freezes(ir::Module& module, PassContext& context) {
  for (const ir::Freeze& freeze : module.freezes) {
    const Matcher matches(freeze.pattern);
    int64_t parameters = 0, numbers = 0;
    for (ir::Parameter& parameter : module.parameters) {
      if (!matches(parameter.name)) continue;
      parameter.frozen = true;
      ++parameters;
      numbers += parameter.elements();
    }
    if (parameters == 0) {
      refuse(module, freeze, matches.wrong, context.diagnostics);
    } else {
      context.diagnostics.remark("expand", freeze.place,
                                 "'" + freeze.pattern + "' freezes " + std::to_string(parameters) +
                                     " parameters, " + std::to_string(numbers) + " numbers");
    }
  }
  refuse_parts(module, context.diagnostics);
  module.freezes.clear();
  for (size_t i = 1; i < module.parameters.size(); ++i) {
    ir::Parameter& parameter = module.parameters[i];
    if (parameter.frozen != module.parameters[i - 1].frozen) parameter.joins_previous = false;
  }
}

}  // namespace tfc::passes
