#include "frontend/architecture.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "frontend/toml_reader.h"
#include "ir/check.h"
#include "ir/text.h"

namespace tfc::frontend {
namespace {

using Lines = std::map<std::string, std::string>;  // by key

// Tables that say nothing of the function, or are written layer by layer.
const std::set<std::string> kOtherTables = {"block", "debug", "inputs", "loss", "run", "shapes", "train"};
const std::set<std::string> kLayerTables = {"attention", "ffn", "norm", "residual"};
// Of [model]: what a layer's settings repeat, and what is not function.
const std::set<std::string> kOtherModelKeys = {
    "name",     "max_seq",  "pattern", "encoder_pattern", "decoder_pattern", "heads",
    "kv_heads", "head_dim", "d_ff"};
// Wherever they stand.
const std::set<std::string> kOtherKeys = {"dropout",  "loss",         "loss_weight",    "aux_loss",
                                          "shared",   "ignore_index", "label_smoothing"};

struct Stack {
  const char *layers, *pattern, *prefix;
};
constexpr std::array<Stack, 3> kStacks = {{{"layers", "pattern", ""},
                                           {"encoder_layers", "encoder_pattern", "encoder."},
                                           {"decoder_layers", "decoder_pattern", "decoder."}}};

std::string text_of(const Tree& value) {
  switch (value.kind) {
    case Tree::Kind::Text:
      return '"' + value.text + '"';
    case Tree::Kind::Integer:
      return std::to_string(value.integer);
    case Tree::Kind::Real:
      return ir::real_text(value.real);
    case Tree::Kind::Boolean:
      return value.boolean ? "true" : "false";
    default:
      break;
  }
  std::string text;
  for (const Tree& element : value.elements) text += (text.empty() ? "" : ", ") + text_of(element);
  return "[" + text + "]";
}

bool is_off(const Tree& value) {
  switch (value.kind) {
    case Tree::Kind::Text:
      return value.text == "none";
    case Tree::Kind::Integer:
      return value.integer == 0;
    case Tree::Kind::Real:
      return value.real == 0;
    case Tree::Kind::Boolean:
      return !value.boolean;
    default:
      return value.elements.empty();
  }
}

void flatten(const Tree& tree, const std::string& key, Lines& lines) {
  if (tree.kind == Tree::Kind::Table) {
    for (const auto& [name, member] : tree.members) {
      if (!kOtherKeys.count(name)) flatten(member, key.empty() ? name : key + "." + name, lines);
    }
  } else if (!tree.elements.empty() && tree.elements[0].find("id")) {
    for (const Tree& node : tree.elements) flatten(node, key + "." + node.find("id")->text, lines);
  } else if (is_off(tree)) {
    lines.erase(key);  // what it narrows may have had it
  } else {
    lines[key] = text_of(tree);
  }
}

/// What the tables say of a layer that no block narrows.
Lines ordinary_layer(const Tree& root, const Tree& model) {
  Lines lines;
  for (const std::string& table : kLayerTables) {
    if (const Tree* tree = root.find(table)) flatten(*tree, table, lines);
  }
  lines.erase("norm.final");  // names say it
  for (const char* key : {"heads", "kv_heads", "head_dim"}) {
    if (const Tree* value = model.find(key)) flatten(*value, std::string("attention.") + key, lines);
  }
  if (const Tree* value = model.find("d_ff")) flatten(*value, "ffn.d_ff", lines);
  return lines;
}

std::vector<Lines> layers_of(const Tree& root, const Tree& model, const Stack& stack, int64_t depth) {
  std::map<std::string, Lines> blocks;
  const Tree* tables = root.find("block");
  const Tree* pattern = model.find(stack.pattern);
  std::vector<Lines> layers;
  for (int64_t i = 0; i < depth; ++i) {
    const std::string name =
        pattern ? pattern->elements[static_cast<size_t>(i) % pattern->elements.size()].text : "";
    const auto [known, added] = blocks.emplace(name, Lines());
    if (added) {
      const Tree* block = tables ? tables->find(name) : nullptr;
      if (!block || !block->find("nodes")) known->second = ordinary_layer(root, model);
      if (block) flatten(*block, "", known->second);
    }
    layers.push_back(known->second);
  }
  return layers;
}

/// "0-2, 5"
std::string ranges(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

/// One line for each setting of a stack's layers.
void add_stack(const std::vector<Lines>& layers, const std::string& prefix, Lines& lines) {
  std::map<std::string, std::map<std::string, std::vector<size_t>>> settings;  // key, value, layers
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const auto& [key, value] : layers[i]) settings[key][value].push_back(i);
  }
  for (const auto& [key, values] : settings) {
    std::string text;
    for (const auto& [value, where] : values) {
      text += (text.empty() ? "" : "; ") + value;
      if (where.size() < layers.size())
        text += (where.size() > 1 ? " in layers " : " in layer ") + ranges(where);
    }
    lines[prefix + key] = text;
  }
}

}  // namespace

std::string architecture(const std::string& resolved, std::string_view (*auto_placement)(int64_t depth)) {
  ir::Diagnostics diagnostics;
  const Document document =
      read_toml(std::make_shared<ir::SourceFile>(ir::SourceFile{"resolved", resolved}), diagnostics);
  const Tree* model = document.root.find("model");
  if (document.damaged || !model)
    return {};  // a dump without a description, or with one that somebody changed
  Lines lines;
  for (const auto& [name, table] : document.root.members) {
    if (table.kind == Tree::Kind::Table && name != "model" && !kOtherTables.count(name) &&
        !kLayerTables.count(name))
      flatten(table, name, lines);
  }
  for (const auto& [name, value] : model->members) {
    if (!kOtherModelKeys.count(name)) flatten(value, "model." + name, lines);
  }
  const Tree* train = document.root.find("train");
  if (const Tree* lora = train ? train->find("lora") : nullptr) flatten(*lora, "train.lora", lines);
  for (const Stack& stack : kStacks) {
    const Tree* depth = model->find(stack.layers);
    if (!depth || depth->integer <= 0) continue;
    std::vector<Lines> layers = layers_of(document.root, *model, stack, depth->integer);
    for (Lines& layer : layers) {
      const auto placement = layer.find("norm.placement");
      if (placement != layer.end() && placement->second == "\"auto\"")
        placement->second = '"' + std::string(auto_placement(depth->integer)) + '"';
    }
    add_stack(layers, stack.prefix, lines);
  }
  std::string text;
  for (const auto& [key, value] : lines) text += key + " = " + value + "\n";
  return text;
}

}  // namespace tfc::frontend
