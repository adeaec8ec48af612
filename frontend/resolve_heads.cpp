#include "frontend/resolve_heads.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "frontend/keys.h"
#include "frontend/scope.h"

namespace tfc::frontend {
namespace {

constexpr size_t kMostHeads = 16;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

class HeadResolver {
 public:
  HeadResolver(const Document& document, const KeyCheck& keys, Description& description,
               ir::Diagnostics& diagnostics)
      : document_(document), keys_(keys), d_(description), diagnostics_(diagnostics) {}

  void run() {
    const Tree* head = document_.root.valid("head");
    if (head)
      for (const auto& [name, member] : head->members)
        if (member.kind == Tree::Kind::Table && !find_key("head", name) && !member.refused)
          named_.emplace_back(name, &member);
    named_.empty() ? only_head() : named_heads(*head);
    tie();
  }

 private:
  ir::Diagnostic& error(const ir::Place& place, std::string message) {
    return diagnostics_.error(place, std::move(message));
  }

  void no_effect(const Scope& scope, const char* key, const std::string& why) {
    if (scope.has(key))
      diagnostics_.warning("unused-key", scope.find(key)->key, "'" + std::string(key) + "' has no effect: " + why);
  }

  /// Where a key that is not written would stand: [head], [head.NAME]; in `table` of the keys.
  void missing(const std::string& header, const char* table, const Tree* tree, const char* key) {
    if (document_.damaged || keys_.meant.count(std::string(table) + "." + key)) return;
    if (tree && (tree->refused || tree->find(key))) return;  // refused: reported already
    error(tree ? tree->place : document_.root.place,
          "[" + header + "] needs the key '" + key + "': " + std::string(find_key(table, key)->meaning));
  }

  // -- one head, or several
  // ------------------------------------------------------------------------------------------

  void only_head() {
    const Tree* tree = document_.root.find("head");
    const Scope scope{document_.root.valid("head")}, loss{document_.root.valid("loss")};
    HeadSettings head;
    head.type = scope.text("type", d_.model.vocab == 0 ? "none" : "lm");
    head.place = d_.places.head;
    head.loss_place = d_.places.loss;
    settings(head, scope, {"head", "head", tree});
    loss_settings(head, scope, loss);
    d_.heads = {head};
  }

  void named_heads(const Tree& table) {
    for (const auto& [name, member] : table.members)
      if (find_key("head", name))
        error(member.key, "'" + name + "' is a setting of an only head, but there are heads with names")
            .notes.push_back("write it in [head." + named_.front().first + "]");
    if (const Tree* loss = document_.root.find("loss"); loss && !loss->members.empty())
      error(loss->key, "[loss] belongs to an only head, but there are heads with names")
          .notes.push_back("write loss, ignore_index and label_smoothing in [head." + named_.front().first + "]");
    if (named_.size() > kMostHeads)
      error(named_[kMostHeads].second->key, "there are " + std::to_string(named_.size()) + " heads, expected at most " +
                                                std::to_string(kMostHeads));
    for (const auto& [name, tree] : named_) named_head(name, *tree);
    unread_layers();
  }

  void named_head(const std::string& name, const Tree& tree) {
    const Scope scope{&tree};
    HeadSettings head;
    head.name = name;
    head.type = scope.text("type", "none");
    head.place = head.loss_place = tree.place;
    if (scope.has("loss")) head.loss_place = scope.place("loss");
    if (!scope.has("type")) missing("head." + name, "heads", &tree, "type");
    settings(head, scope, {"head." + name, "heads", &tree});
    loss_settings(head, scope, scope);
    head.loss_weight = scope.real("loss_weight", 1.0);
    if (!head.has_loss()) no_effect(scope, "loss_weight", "the head has no loss");
    from(head, scope);
    d_.heads.push_back(head);
  }

  // -- settings of a head
  // ------------------------------------------------------------------------------------------

  struct Where {
    std::string header;  // "head", "head.nsp"
    const char* table;   // of the keys: "head", "heads"
    const Tree* tree;
  };

  /// Is the type what was meant? Otherwise an error has been reported already.
  static bool is_known(const HeadSettings& head, const Scope& scope) {
    return scope.has("type") || (head.name.empty() && !scope.was_refused("type"));
  }

  void settings(HeadSettings& head, const Scope& scope, const Where& where) {
    const bool known = is_known(head, scope);
    head.bias = head.type != "none" && scope.flag("bias", head.type == "mlm");
    if (known && head.type == "none" && scope.flag("bias", false))
      no_effect(scope, "bias", "there is no output projection");
    if (known && head.reads_table() && d_.model.vocab == 0 && !Scope{document_.root.valid("model")}.was_refused("vocab"))
      error(scope.place("type"), "a language-model head needs a vocabulary, but vocab = 0");
    head.tie = head.reads_table() && scope.flag("tie", d_.embedding.tie);
    if (known && !head.reads_table()) no_effect(scope, "tie", "the head is no language model");
    classes(head, scope, where, known);
    pool(head, scope, known);
  }

  void classes(HeadSettings& head, const Scope& scope, const Where& where, bool known) {
    if (head.type == "regression") {
      head.classes = scope.integer("classes", 1);
    } else if (head.type == "classifier" || head.type == "token_classifier") {
      head.classes = scope.integer("classes", 0);
      if (!scope.has("classes")) missing(where.header, where.table, where.tree, "classes");
    } else if (known && scope.has("classes")) {
      needs(scope, "classes", "\"classifier\", \"token_classifier\" or \"regression\"", head);
    }
  }

  void pool(HeadSettings& head, const Scope& scope, bool known) {
    const bool regression = head.type == "regression";
    if (head.type == "classifier" || regression) {
      head.pool = scope.text("pool", d_.model.kind == "decoder" ? "last" : "first");
      if (head.pool == "none" && !regression)
        error(scope.place("pool"), "a classifier looks at a sequence: pool is \"first\", \"mean\" or \"last\"")
            .notes.push_back("type = \"token_classifier\" has an answer for each token");
      if (head.pool == "none") head.pool.clear();
    } else if (known && scope.has("pool")) {
      needs(scope, "pool", "\"classifier\" or \"regression\"", head);
    }
  }

  void needs(const Scope& scope, const char* key, const std::string& types, const HeadSettings& head) {
    error(scope.find(key)->key, "'" + std::string(key) + "' needs type = " + types + ", found " + quoted(head.type));
  }

  // -- its loss
  // ------------------------------------------------------------------------------------------

  void loss_settings(HeadSettings& head, const Scope& scope, const Scope& loss) {
    const bool known = is_known(head, scope);
    const std::vector<std::string> possible = losses_of(head.type);
    head.loss = scope.text("loss", possible.front());
    if (known && std::find(possible.begin(), possible.end(), head.loss) == possible.end()) {
      std::string list;
      for (const std::string& one : possible) list += (list.empty() ? "" : " or ") + quoted(one);
      error(scope.place("loss"), "a head of type " + quoted(head.type) + " has no loss " + quoted(head.loss) +
                                     ", expected " + list);
    }
    if (head.loss == "cross_entropy" && possible.front() == head.loss && head.classes == 1)
      error(scope.place("classes"), "cross entropy chooses among classes, but there is one alone")
          .notes.push_back("loss = \"binary_cross_entropy\" asks yes or no of each class");
    head.ignore_index = loss.integer("ignore_index", -100);
    head.label_smoothing = loss.real("label_smoothing", 0.0);
    if (head.loss == "cross_entropy" || !known) return;
    const bool sole_none = head.name.empty() && head.type == "none";
    for (const char* key : {"ignore_index", "label_smoothing"})
      no_effect(loss, key,
                sole_none ? "a model without a head has no loss" : "the loss is " + quoted(head.loss));
    head.label_smoothing = 0;
  }

  /// What a head can be trained by; the first is the default.
  static std::vector<std::string> losses_of(const std::string& type) {
    if (type == "none") return {"none"};
    if (type == "regression") return {"mse", "none"};
    if (type == "classifier" || type == "token_classifier") return {"cross_entropy", "binary_cross_entropy", "none"};
    return {"cross_entropy", "none"};
  }

  // -- the layer that it reads
  // ------------------------------------------------------------------------------------------

  /// Layers that a head may read.
  struct Stack {
    std::string prefix;
    int64_t depth;
    std::string layer(int64_t number) const { return prefix + std::to_string(number); }
  };
  Stack stack(bool source) const {
    const Scope model{document_.root.valid("model")};
    if (!d_.model.is_encoder_decoder()) return {"layers.", model.integer("layers", 0)};
    const std::string side = source ? "encoder" : "decoder";
    return {side + ".layers.", model.integer(side + "_layers", 0)};
  }

  /// The layer's number; none where the text names none.
  static std::optional<int64_t> layer_of(std::string_view text, const Stack& stack) {
    if (!text.starts_with(stack.prefix)) return {};
    text.remove_prefix(stack.prefix.size());
    int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size()) return {};
    if (number < 0) number += stack.depth;
    return number >= 0 && number < stack.depth ? std::optional(number) : std::nullopt;
  }

  void from(HeadSettings& head, const Scope& scope) {
    if (!scope.has("from")) return;
    const std::string text = scope.text("from", "");
    head.source = d_.model.is_encoder_decoder() && text.starts_with("encoder.");
    const Stack stack = this->stack(head.source);
    if (const std::optional<int64_t> layer = layer_of(text, stack)) {
      head.from = *layer;
      if (head.source && head.reads_table() && d_.model.src_vocab == 0 && d_.model.vocab > 0)
        error(scope.place("type"), "a language-model head on the encoder needs a source vocabulary, but src_vocab = 0");
      return;
    }
    if (stack.depth <= 0 && !head.source) return;  // reported
    std::string expected = "expected " + quoted(stack.layer(0)) + " to " + quoted(stack.layer(stack.depth - 1));
    if (stack.depth <= 0) expected = "the model has no encoder";
    error(scope.place("from"), "there is no layer " + quoted(text) + ", " + expected);
  }

  /// Layers above all heads would be trained by nothing.
  void unread_layers() {
    const Stack own = stack(false);
    int64_t highest = 0;
    bool any = false;
    for (const HeadSettings& head : d_.heads) {
      if (head.source) continue;
      any = true;
      highest = std::max(highest, head.from < 0 ? own.depth : head.from + 1);
    }
    if (!any) {
      error(document_.root.find("head")->place, "all heads read the encoder, and none reads the decoder")
          .notes.push_back("an encoder alone is kind = \"encoder\"");
    } else if (highest < own.depth) {
      error(document_.root.find("head")->place, "no head reads layer " + std::to_string(highest) +
                                                    " and what is above it; the highest that is read is " +
                                                    std::to_string(highest - 1));
    }
  }

  void tie() {
    const auto reads = [](const HeadSettings& head) { return head.reads_table(); };
    const bool any = std::any_of(d_.heads.begin(), d_.heads.end(), reads);
    const auto is_tied = [](const HeadSettings& head) { return head.tie; };
    const Scope head{document_.root.valid("head")};
    const bool known = head.has("type") || !head.was_refused("type");
    if (!any && known && d_.embedding.tie)
      no_effect(Scope{document_.root.valid("embedding")}, "tie", "there is no language-model head");
    d_.embedding.tie = std::any_of(d_.heads.begin(), d_.heads.end(), is_tied);
  }

  const Document& document_;
  const KeyCheck& keys_;
  Description& d_;
  ir::Diagnostics& diagnostics_;
  std::vector<std::pair<std::string, const Tree*>> named_;
};

}  // namespace

void resolve_heads(const Document& document, const KeyCheck& keys, Description& description,
                   ir::Diagnostics& diagnostics) {
  HeadResolver(document, keys, description, diagnostics).run();
}

}  // namespace tfc::frontend
