#include "frontend/check_keys.h"

#include <algorithm>
#include <cmath>

#include "frontend/keys.h"
#include "ir/text.h"

namespace tfc::frontend {
namespace {

std::string quote(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string value_text(const Tree& value) {
  switch (value.kind) {
    case Tree::Kind::Text:
      return ir::quoted(value.text);
    case Tree::Kind::Integer:
      return std::to_string(value.integer);
    case Tree::Kind::Real:
      return ir::real_text(value.real);
    case Tree::Kind::Boolean:
      return value.boolean ? "true" : "false";
    default:
      return std::string(kind_text(value.kind));
  }
}

std::string number_text(double number) {
  const bool whole = std::floor(number) == number && std::abs(number) < 1e16;
  return whole ? std::to_string(static_cast<int64_t>(number)) : ir::real_text(number);
}

/// Where a context's keys are written, as messages say it: "in [model]", "in a norm node".
std::string context_text(std::string_view context) {
  if (context.empty()) return "at the top level";
  if (context == "block") return "in a block";
  if (context == "layers") return "in a layer";
  if (context == "heads") return "in a named head";
  if (context.starts_with("layer."))
    return "in the " + std::string(context.substr(6)) + " settings of a block or layer";
  if (context == "node.") return "in a node";
  if (context.starts_with("node."))
    return std::string(context[5] == 'a' ? "in an " : "in a ") + std::string(context.substr(5)) + " node";
  return "in [" + std::string(context) + "]";
}

class Checker {
 public:
  explicit Checker(ir::Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  KeyCheck run(Tree& root) {
    table(root, "");
    blocks(root.find("block"));
    layers(root.find("layers"));
    for (const char* side : {"encoder", "decoder"}) {
      Tree* tree = root.find(side);
      if (!tree || tree->refused) continue;
      for (auto& [name, member] : tree->members)
        if (name != "layers") unknown(member, name, side, {"layers"});
      if (is_table(tree->find("layers"))) layers(tree->find("layers"));
    }
    return std::move(check_);
  }

 private:
  ir::Diagnostic& refuse(Tree& tree, const ir::Place& place, std::string message) {
    tree.refused = true;
    return diagnostics_.error(place, std::move(message));
  }

  bool is_table(Tree* tree) {
    if (!tree || tree->refused) return false;
    if (tree->kind == Tree::Kind::Table) return true;
    refuse(*tree, tree->place, "expected a table, found " + std::string(kind_text(tree->kind)));
    return false;
  }

  // -- tables
  // --------------------------------------------------------------------------------------------------

  void table(Tree& tree, std::string_view context) {
    const std::vector<const Key*> keys = keys_in(context);
    for (auto& [name, member] : tree.members) {
      const auto known =
          std::find_if(keys.begin(), keys.end(), [&](const Key* key) { return key->name == name; });
      if (known != keys.end())
        value(member, **known);
      else if (context == "head" && member.kind == Tree::Kind::Table)
        named_head(member, name);
      else
        unknown_in(member, name, context, keys);
    }
  }

  void named_head(Tree& tree, const std::string& name) {
    if (!is_identifier(name))
      refuse(tree, tree.key, "the head's name " + quote(name) + " is not made of letters, digits and '_'");
    if (name == "COUNT") refuse(tree, tree.key, "a head cannot be called COUNT, which counts the heads in the header");
    table(tree, "heads");
  }

  void blocks(Tree* tree) {
    if (!is_table(tree)) return;
    for (auto& [name, block] : tree->members) {
      if (!is_identifier(name))
        refuse(block, block.key,
               "the block's name " + quote(name) + " is not made of letters, digits and '_'");
      if (is_table(&block)) table(block, "block");
    }
  }

  void layers(Tree* tree) {
    if (!is_table(tree)) return;
    for (auto& [name, layer] : tree->members)
      if (is_table(&layer)) table(layer, "layers");
  }

  void nodes(Tree& tree) {
    if (tree.kind != Tree::Kind::Array) return wrong_type(tree, "a list of nodes");
    for (Tree& node : tree.elements)
      if (is_table(&node)) this->node(node);
  }

  void node(Tree& node) {
    Tree* op = node.find("op");
    std::string context = "node.";
    if (!op) {
      refuse(node, node.place, "a node needs an op").notes.push_back(op_note());
    } else {
      value(*op, *find_key("node", "op"));
      if (op->refused)
        node.refused = true;
      else
        context += op->text;
    }
    if (!node.refused) table(node, context);
  }

  static std::string op_note() {
    std::string note = "ops are";
    for (const std::string_view op : node_ops())
      note += (op == node_ops().front() ? " " : ", ") + std::string(op);
    return note;
  }

  // -- unknown keys
  // --------------------------------------------------------------------------------------------

  void unknown_in(Tree& tree, const std::string& name, std::string_view context,
                  const std::vector<const Key*>& keys) {
    std::vector<std::string> names;
    for (const Key* key : keys) names.emplace_back(key->name);
    unknown(tree, name, context, names);
  }

  void unknown(Tree& tree, const std::string& name, std::string_view context,
               const std::vector<std::string>& names) {
    const bool is_table = tree.kind == Tree::Kind::Table;
    ir::Diagnostic& error = refuse(tree, tree.key,
                                   "unknown " + std::string(is_table && context.empty() ? "table " : "key ") +
                                       quote(name) + " " + context_text(context));
    if (const std::string note = suggestion(name, context, names, is_table); !note.empty())
      error.notes.push_back(note);
  }

  std::string suggestion(const std::string& name, std::string_view context,
                         const std::vector<std::string>& names, bool is_table) {
    if (is_table && context.empty())
      if (const std::string_view ours = our_table(name); !ours.empty())
        return "it is called [" + std::string(ours) + "] here";
    if (const std::string note = other_name(name, context, names); !note.empty()) return note;
    if (const std::string near = ir::nearest_name(name, names); !near.empty()) {
      check_.meant.insert(std::string(context) + "." + near);
      return "did you mean " + (is_table && context.empty() ? "[" + near + "]" : quote(near)) + "?";
    }
    if (context == "block" || context == "layers")
      if (const std::string note = within_settings(name); !note.empty()) return note;
    if (const std::string place = home_of(name); !place.empty()) return quote(name) + " belongs in " + place;
    if (names.size() > 20) return {};
    std::string list;
    for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
    return "known here: " + list;
  }

  /// For an option that stands beside the tables of a block or layer instead of inside one.
  static std::string within_settings(const std::string& name) {
    for (const char* op : {"attention", "ffn", "norm", "residual"})
      for (const Key* key : keys_in(std::string("layer.") + op))
        if (key->name == name)
          return "write it inside braces: " + std::string(op) + " = { " + name + " = ... }";
    return {};
  }

  /// For a name that other projects use.
  std::string other_name(const std::string& name, std::string_view context,
                         const std::vector<std::string>& names) {
    const std::string_view ours = our_name(name);
    if (ours.empty() || std::find(names.begin(), names.end(), name) != names.end()) return {};
    const size_t dot = ours.rfind('.');
    const std::string key(ours.substr(dot + 1));
    if (!home_of(name).empty() && ir::nearest_name(name, names).empty() && find_key(context, key) == nullptr)
      return {};  // a name of ours too, in another table
    const bool here = std::find(names.begin(), names.end(), key) != names.end();
    if (!here && ours.starts_with("node.")) return {};
    check_.meant.insert(std::string(ours));
    return "it is called " + quote(key) + " here" +
           (here ? "" : ", in [" + std::string(ours.substr(0, dot)) + "]");
  }

  /// The table in which a key of this name is known, when that is one alone.
  static std::string home_of(const std::string& name) {
    std::string home;
    for (const Key& key : all_keys()) {
      if (key.name != name || key.table.empty() || key.table.starts_with("node") || key.table == "heads" ||
          key.table == "layers" || key.table == "block")
        continue;
      if (!home.empty()) return {};
      home = "[" + std::string(key.table) + "]";
    }
    return home;
  }

  // -- values
  // --------------------------------------------------------------------------------------------------

  void value(Tree& tree, const Key& key) {
    switch (key.type) {
      case KeyType::Integer:
        integer(tree, key);
        break;
      case KeyType::Real:
        real(tree, key);
        break;
      case KeyType::Boolean:
        if (tree.kind != Tree::Kind::Boolean) wrong_type(tree, "true or false");
        break;
      case KeyType::Text:
        if (tree.kind != Tree::Kind::Text) wrong_type(tree, "a string");
        break;
      case KeyType::Choice:
        choice(tree, key);
        break;
      case KeyType::Texts:
        list(tree, Tree::Kind::Text, "a list of strings", key);
        break;
      case KeyType::TextOrTexts:
        if (tree.kind != Tree::Kind::Text) list(tree, Tree::Kind::Text, "a string or a list of strings", key);
        break;
      case KeyType::Integers:
        list(tree, Tree::Kind::Integer, "a list of integers", key);
        break;
      case KeyType::Reals:
        list(tree, Tree::Kind::Real, "a list of numbers", key);
        break;
      case KeyType::Table:
        subtable(tree, key);
        break;
      case KeyType::Nodes:
        nodes(tree);
        break;
    }
  }

  void subtable(Tree& tree, const Key& key) {
    if (tree.kind != Tree::Kind::Table) {
      ir::Diagnostic& error =
          refuse(tree, tree.place, "expected a table, found " + std::string(kind_text(tree.kind)));
      if (key.table.empty() && find_key("model", key.name))
        error.notes.push_back("the key " + quote(key.name) + " belongs in [model]");
      return;
    }
    if (key.subtable != "*") table(tree, key.subtable);
  }

  void wrong_type(Tree& tree, std::string_view expected) {
    ir::Diagnostic& error =
        refuse(tree, tree.place,
               "expected " + std::string(expected) + ", found " + std::string(kind_text(tree.kind)));
    const std::string& text = tree.text;
    const bool number = tree.kind == Tree::Kind::Text && !text.empty() &&
                        text.find_first_not_of("0123456789.-+e_") == std::string::npos;
    if (number || text == "true" || text == "false")
      error.notes.push_back("write " + text + " without quotes");
  }

  void integer(Tree& tree, const Key& key) {
    if (tree.kind == Tree::Kind::Real && std::floor(tree.real) == tree.real && std::abs(tree.real) < 1e15) {
      wrong_type(tree, "an integer");
      return;
    }
    if (tree.kind != Tree::Kind::Integer) return wrong_type(tree, "an integer");
    range(tree, key, static_cast<double>(tree.integer));
  }

  void real(Tree& tree, const Key& key) {
    if (tree.kind == Tree::Kind::Integer) {
      tree.kind = Tree::Kind::Real;
      tree.real = static_cast<double>(tree.integer);
    }
    if (tree.kind != Tree::Kind::Real) return wrong_type(tree, "a number");
    range(tree, key, tree.real);
  }

  void range(Tree& tree, const Key& key, double number) {
    const bool low = key.above_least ? !(number > key.least) : !(number >= key.least);  // NaN is low
    if (!low && number <= key.most) return;
    const std::string from = key.above_least         ? "above " + number_text(key.least) + " and at most "
                             : key.least == key.most ? ""
                                                     : number_text(key.least) + " to ";
    refuse(tree, tree.place,
           std::string(key.name) + " is " + value_text(tree) + ", expected " + from + number_text(key.most));
  }

  void choice(Tree& tree, const Key& key) {
    if (tree.kind != Tree::Kind::Text) return wrong_type(tree, "one of " + choices_text(key));
    const std::vector<std::string> choices = split(key.choices, '|');
    if (std::find(choices.begin(), choices.end(), tree.text) != choices.end()) return;
    ir::Diagnostic& error = refuse(
        tree, tree.place,
        "unknown " + std::string(key.name) + " " + ir::quoted(tree.text) + ", expected " + choices_text(key));
    std::string meant(our_value(key.name, tree.text));
    if (std::find(choices.begin(), choices.end(), meant) == choices.end())
      meant = ir::nearest_name(tree.text, choices);
    if (!meant.empty()) error.notes.push_back("did you mean " + ir::quoted(meant) + "?");
  }

  static std::string choices_text(const Key& key) {
    const std::vector<std::string> choices = split(key.choices, '|');
    std::string text;
    for (size_t i = 0; i < choices.size(); ++i)
      text += (i == 0 ? "\"" : i + 1 == choices.size() ? " or \"" : ", \"") + choices[i] + "\"";
    return text;
  }

  void list(Tree& tree, Tree::Kind kind, std::string_view expected, const Key& key) {
    if (tree.kind != Tree::Kind::Array) return wrong_type(tree, expected);
    for (Tree& element : tree.elements) {
      if (kind == Tree::Kind::Real && element.kind == Tree::Kind::Integer) {
        element.kind = kind;
        element.real = static_cast<double>(element.integer);
      }
      if (element.kind != kind)
        wrong_type(element, expected);
      else if (kind == Tree::Kind::Integer)
        range(element, key, static_cast<double>(element.integer));
      else if (kind == Tree::Kind::Real)
        range(element, key, element.real);
      tree.refused |= element.refused;
    }
  }

  ir::Diagnostics& diagnostics_;
  KeyCheck check_;
};

}  // namespace

KeyCheck check_keys(Tree& root, ir::Diagnostics& diagnostics) { return Checker(diagnostics).run(root); }

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

}  // namespace tfc::frontend
