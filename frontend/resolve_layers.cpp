#include "frontend/resolve_layers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "frontend/resolve_nodes.h"
#include "frontend/resolve_settings.h"

namespace tfc::frontend {
namespace {

constexpr const char* kTables[] = {"attention", "ffn", "norm", "residual"};

struct Range {
  int64_t first = 0, last = 0;
};

/// "3", "4-5", "-1", "-4--1"; negative numbers count from the end. Empty: no such form.
std::optional<Range> parse_range(const std::string& text, int64_t count) {
  const char* at = text.c_str();
  const auto number = [&](int64_t& value) {
    const char* digits = *at == '-' ? at + 1 : at;
    if (*digits < '0' || *digits > '9') return false;
    char* end = nullptr;
    value = std::strtoll(at, &end, 10);
    if (value < 0 || *at == '-') value += count;
    at = end;
    return true;
  };
  Range range;
  if (!number(range.first)) return std::nullopt;
  range.last = range.first;
  if (*at == '-') {
    ++at;
    if (!number(range.last)) return std::nullopt;
  }
  return *at == '\0' ? std::optional(range) : std::nullopt;
}

/// One stack of layers: all of a decoder or encoder, or one side of an encoder-decoder.
struct Stack {
  std::string side;   // "", "encoder", "decoder"
  int64_t count = 0;  // -1: unknown
  bool may_read_memory = false;
  std::vector<Layer>* layers = nullptr;
};

class LayerResolver {
 public:
  LayerResolver(const Tree& root, Description& description, ir::Diagnostics& diagnostics)
      : root_(root), description_(description), diagnostics_(diagnostics), blocks_(root.valid("block")) {}

  void run(const std::vector<Stack>& stacks, bool damaged) {
    description_.defaults = settings({});
    for (const Stack& stack : stacks) resolve(stack);
    const Scope model{table("model")};
    const bool patterns_known = !damaged && !model.was_refused("pattern") &&
                                !model.was_refused("encoder_pattern") &&
                                !model.was_refused("decoder_pattern");
    check_unused_blocks(patterns_known);
  }

 private:
  const Tree* table(const char* name) const { return root_.valid(name); }

  // -- layers
  // --------------------------------------------------------------------------------------------------

  void resolve(const Stack& stack) {
    const std::vector<const Tree*> pattern = pattern_of(stack);
    const std::vector<std::vector<const Tree*>> overrides = overrides_of(stack);
    std::map<std::string, Layer> plain;  // layers without overrides, by block
    for (int64_t i = 0; i < stack.count; ++i) {
      const Tree* name = pattern.empty() ? nullptr : pattern[static_cast<size_t>(i) % pattern.size()];
      const std::string block = name ? name->text : "";
      const auto& narrowing = overrides[static_cast<size_t>(i)];
      if (!narrowing.empty()) {
        stack.layers->push_back(layer(block, narrowing, stack));
        continue;
      }
      const auto found = plain.find(block);
      stack.layers->push_back(found != plain.end() ? found->second : plain[block] = layer(block, {}, stack));
    }
  }

  /// The names of the stack's pattern, unknown ones left out.
  std::vector<const Tree*> pattern_of(const Stack& stack) {
    const Scope model{table("model")};
    const Tree* list = stack.side.empty() ? nullptr : model.find(stack.side + "_pattern");
    if (!list) list = model.find("pattern");
    std::vector<const Tree*> pattern;
    if (!list) return pattern;
    for (const Tree& name : list->elements) {
      used_.insert(name.text);
      if (blocks_ && blocks_->find(name.text))
        pattern.push_back(&name);
      else
        unknown_block(name);
    }
    return pattern;
  }

  void unknown_block(const Tree& name) {
    std::vector<std::string> known;
    if (blocks_)
      for (const auto& [block, tree] : blocks_->members) known.push_back(block);
    const std::string near = ir::nearest_name(name.text, known);
    diagnostics_.error(name.place, "there is no block '" + name.text + "'")
        .notes.push_back(near.empty() ? "a block is made by a table [block." + name.text + "]"
                                      : "did you mean '" + near + "'?");
  }

  /// For each layer the tables [layers.X] that name it, in the order in which they were written.
  std::vector<std::vector<const Tree*>> overrides_of(const Stack& stack) {
    std::vector<std::vector<const Tree*>> overrides(static_cast<size_t>(std::max<int64_t>(stack.count, 0)));
    const Tree* side = stack.side.empty() ? &root_ : root_.valid(stack.side);
    const Tree* layers = side ? side->valid("layers") : nullptr;
    if (!layers) return overrides;
    for (const auto& [name, tree] : layers->members) {
      const std::optional<Range> range = parse_range(name, stack.count);
      if (!range || !check_range(name, *range, tree, stack)) {
        if (!range)
          diagnostics_.error(tree.key, "'" + name +
                                           "' names no layers; expected a number (3), a range (4-5) or -1 "
                                           "for the last layer");
        continue;
      }
      for (int64_t i = range->first; i <= range->last; ++i)
        overrides[static_cast<size_t>(i)].push_back(&tree);
    }
    return overrides;
  }

  bool check_range(const std::string& name, const Range& range, const Tree& tree, const Stack& stack) {
    if (stack.count < 0) return false;
    if (range.first >= 0 && range.last < stack.count && range.first <= range.last) return true;
    const bool backwards = range.first > range.last && range.last >= 0 && range.first < stack.count;
    diagnostics_.error(tree.key, backwards ? "the range " + name + " is empty: it ends before it begins"
                                           : "there is no layer " + name + ": " + layer_count(stack));
    return false;
  }

  static std::string layer_count(const Stack& stack) {
    const std::string owner = stack.side.empty() ? "the model" : "the " + stack.side;
    if (stack.count == 0) return owner + " has none";
    return stack.count == 1 ? owner + " has layer 0 alone"
                            : owner + " has layers 0 to " + std::to_string(stack.count - 1);
  }

  Layer layer(const std::string& block, const std::vector<const Tree*>& overrides, const Stack& stack) {
    const Tree* tree = blocks_ && !block.empty() ? blocks_->valid(block) : nullptr;
    const Tree* nodes = tree ? tree->find("nodes") : nullptr;
    Layer made;
    made.block = block;
    made.place = !overrides.empty() ? overrides.back()->place
                 : tree             ? tree->place
                                    : description_.places.model;
    made.written_out = nodes != nullptr;
    made.shared = tree && Scope{tree}.flag("shared", false);
    if (made.shared && !overrides.empty()) refuse_own_settings(block, *overrides.back());
    if (!nodes) {
      std::vector<const Tree*> narrowing = overrides;
      if (tree) narrowing.insert(narrowing.begin(), tree);
      made.settings = settings(narrowing);
      return made;
    }
    made.settings = description_.defaults;
    check_only_nodes(*tree, *nodes);
    if (!nodes->refused)
      made.nodes =
          resolve_nodes(*nodes, {root_, description_, block, stack.may_read_memory, overrides}, diagnostics_);
    return made;
  }

  void refuse_own_settings(const std::string& block, const Tree& layer) {
    if (!refused_.insert(&layer).second) return;
    diagnostics_
        .error(layer.key,
               "the block '" + block + "' is shared, so its layers cannot have settings of their own")
        .notes.push_back("write them in [block." + block + "], for all of its layers");
  }

  void check_only_nodes(const Tree& block, const Tree& nodes) {
    for (const char* name : kTables)
      if (const Tree* table = block.valid(name))
        diagnostics_
            .error(table->key, "'" + std::string(name) +
                                   "' changes the ordinary block, but this block has nodes of its own; "
                                   "write the settings in its nodes")
            .notes.push_back("nodes are at " + nodes.key.text());
  }

  // -- settings
  // ------------------------------------------------------------------------------------------------

  /// Settings of an ordinary layer, narrowed by blocks and layers.
  LayerSettings settings(const std::vector<const Tree*>& narrowing) {
    Scope attention{table("model"), table("attention")}, ffn{table("model"), table("ffn")},
        norm{table("norm")}, residual{table("model"), table("residual")};
    for (const Tree* tree : narrowing) {
      attention = attention.narrowed(tree->valid("attention"));
      ffn = ffn.narrowed(tree->valid("ffn"));
      norm = norm.narrowed(tree->valid("norm"));
      residual = residual.narrowed(tree->valid("residual"));
    }
    return {resolve_attention(attention, description_, true, diagnostics_),
            resolve_ffn(ffn, description_, diagnostics_), resolve_norm(norm, diagnostics_),
            resolve_residual(residual)};
  }

  /// Blocks that no pattern names are checked too.
  void check_unused_blocks(bool patterns_known) {
    if (!blocks_) return;
    for (const auto& [name, tree] : blocks_->members) {
      if (used_.count(name) || tree.refused) continue;
      if (patterns_known)
        diagnostics_.warning("unused-block", tree.key, "no pattern names the block '" + name + "'");
      Stack anywhere;
      anywhere.may_read_memory = true;
      layer(name, {}, anywhere);
    }
  }

  const Tree& root_;
  Description& description_;
  ir::Diagnostics& diagnostics_;
  const Tree* blocks_;
  std::set<std::string> used_;
  std::set<const Tree*> refused_;
};

void check_sides(const Tree& root, const Description& description, ir::Diagnostics& diagnostics) {
  const auto refuse = [&](const char* name, const std::string& message) {
    if (const Tree* tree = root.valid(name)) diagnostics.error(tree->key, message);
  };
  if (description.model.is_encoder_decoder()) {
    refuse("layers", "an encoder-decoder has two stacks; write [encoder.layers.X] or [decoder.layers.X]");
  } else if (!description.model.kind.empty()) {
    for (const char* side : {"encoder", "decoder"})
      refuse(side, "[" + std::string(side) + ".layers] needs kind = \"encoder-decoder\"; write [layers.X]");
  }
}

}  // namespace

void resolve_layers(const Tree& root, const std::vector<int64_t>& counts, Description& description,
                    bool damaged, ir::Diagnostics& diagnostics) {
  check_sides(root, description, diagnostics);
  std::vector<Stack> stacks;
  if (description.model.is_encoder_decoder()) {
    stacks.push_back({"encoder", counts[0], false, &description.encoder_layers});
    stacks.push_back({"decoder", counts[1], true, &description.decoder_layers});
  } else {
    stacks.push_back({"", counts[0], false, &description.layers});
  }
  LayerResolver(root, description, diagnostics).run(stacks, damaged);
}

}  // namespace tfc::frontend
