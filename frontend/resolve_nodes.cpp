#include "frontend/resolve_nodes.h"

#include <algorithm>
#include <map>

#include "frontend/check_keys.h"
#include "frontend/resolve_settings.h"

namespace tfc::frontend {
namespace {

struct Draft {
  BlockNode node;
  const Tree* tree = nullptr;
  std::vector<int> inputs;  // indices of drafts; -1: x
  std::vector<ir::Place> input_places;
};

class NodeResolver {
 public:
  NodeResolver(const Tree& nodes, const BlockContext& context, ir::Diagnostics& diagnostics)
      : nodes_(nodes), context_(context), diagnostics_(diagnostics), errors_before_(diagnostics.errors()) {}

  std::vector<BlockNode> run() {
    if (nodes_.elements.empty()) diagnostics_.error(nodes_.place, "a block needs at least one node");
    for (const Tree& tree : nodes_.elements) draft(tree);
    for (Draft& draft : drafts_) find_inputs(draft);
    if (!good() || errors_hidden_ > 0) return {};
    const std::vector<int> order = sorted();
    if (good()) check_used();
    if (!good()) return {};
    for (const int index : order) settle(drafts_[static_cast<size_t>(index)]);
    check_output();
    check_layer_tables();
    std::vector<BlockNode> result;
    for (const int index : order) result.push_back(drafts_[static_cast<size_t>(index)].node);
    return good() ? result : std::vector<BlockNode>();
  }

 private:
  bool good() const { return diagnostics_.errors() == errors_before_; }

  // -- names
  // ---------------------------------------------------------------------------------------------------

  void draft(const Tree& tree) {
    if (tree.refused) {
      ++errors_hidden_;
      return;
    }
    Draft draft;
    draft.tree = &tree;
    draft.node.op = tree.find("op")->text;
    draft.node.place = tree.place;
    const Tree* id = tree.find("id");
    if (!id) {
      diagnostics_.error(tree.place, "a node needs an id");
    } else if (id->refused) {
      ++errors_hidden_;
    } else {
      draft.node.id = id->text;
      check_id(*id);
    }
    drafts_.push_back(std::move(draft));
  }

  void check_id(const Tree& id) {
    if (id.text == "x" || id.text == "memory")
      diagnostics_.error(id.place, "'" + id.text + "' cannot be a node's id: it means the " +
                                       (id.text == "x" ? "block's input" : "encoder's output"));
    else if (!is_identifier(id.text))
      diagnostics_.error(id.place, "the id '" + id.text + "' is not made of letters, digits and '_'");
    if (const int first = index_of(id.text); first >= 0)
      diagnostics_.error(id.place, "two nodes are called '" + id.text + "'")
          .notes.push_back("the first is at " +
                           drafts_[static_cast<size_t>(first)].tree->find("id")->place.text());
  }

  int index_of(const std::string& id) const {
    for (size_t i = 0; i < drafts_.size(); ++i)
      if (drafts_[i].node.id == id) return static_cast<int>(i);
    return -1;
  }

  void find_inputs(Draft& draft) {
    const Tree* in = draft.tree->find("in");
    if (in && in->refused) {
      ++errors_hidden_;
      return;
    }
    std::vector<const Tree*> names;
    if (in && in->kind == Tree::Kind::Text) names.push_back(in);
    if (in && in->kind == Tree::Kind::Array)
      for (const Tree& element : in->elements) names.push_back(&element);
    for (const Tree* name : names) {
      draft.node.inputs.push_back(name->text);
      draft.input_places.push_back(name->place);
      draft.inputs.push_back(index_of(name->text));
      if (draft.inputs.back() < 0 && name->text != "x") unknown_input(*name);
    }
    check_count(draft, in);
  }

  void unknown_input(const Tree& name) {
    if (errors_hidden_ > 0) return;  // it may be one of the nodes that could not be read
    std::vector<std::string> known{"x"};
    for (const Draft& draft : drafts_) known.push_back(draft.node.id);
    ir::Diagnostic& error =
        diagnostics_.error(name.place, "there is no node '" + name.text + "' in this block");
    const std::string near = ir::nearest_name(name.text, known);
    if (name.text == "memory")
      error.notes.push_back("an attention node reads it with source = \"memory\"");
    else if (!near.empty())
      error.notes.push_back("did you mean '" + near + "'?");
  }

  void check_count(const Draft& draft, const Tree* in) {
    const std::string& op = draft.node.op;
    const size_t least = op == "residual" || op == "multiply" ? 2 : 1;
    const size_t count = draft.inputs.size();
    if (op == "residual" ? count >= least : count == least) return;
    diagnostics_.error(in ? in->place : draft.tree->place,
                       "a node with op = \"" + op + "\" reads " + (op == "residual" ? "at least " : "") +
                           std::to_string(least) + (least == 1 ? " input" : " inputs") + ", found " +
                           std::to_string(count));
  }

  // -- order
  // ---------------------------------------------------------------------------------------------------

  /// Every node after its inputs; of those that are ready, the one written first.
  std::vector<int> sorted() {
    std::vector<int> order;
    std::vector<bool> done(drafts_.size());
    while (order.size() < drafts_.size()) {
      const int next = first_ready(done);
      if (next < 0) {
        report_cycle(done);
        return {};
      }
      done[static_cast<size_t>(next)] = true;
      order.push_back(next);
    }
    return order;
  }

  int first_ready(const std::vector<bool>& done) const {
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const std::vector<int>& inputs = drafts_[i].inputs;
      const bool ready = std::all_of(inputs.begin(), inputs.end(), [&](int input) {
        return input < 0 || done[static_cast<size_t>(input)];
      });
      if (!done[i] && ready) return static_cast<int>(i);
    }
    return -1;
  }

  /// Every node that is left reads one that is left: walking back along them comes round.
  void report_cycle(const std::vector<bool>& done) {
    int at = static_cast<int>(std::find(done.begin(), done.end(), false) - done.begin());
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      for (const int input : drafts_[static_cast<size_t>(at)].inputs)
        if (input >= 0 && !done[static_cast<size_t>(input)]) at = input;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    const int first = *std::min_element(path.begin(), path.end());
    std::rotate(path.begin(), std::find(path.begin(), path.end(), first), path.end());
    std::string circle = id_of(first);
    for (auto step = path.rbegin(); step != path.rend(); ++step) circle += " -> " + id_of(*step);
    diagnostics_.error(drafts_[static_cast<size_t>(first)].tree->place,
                       "the nodes go round in a circle: " + circle);
  }

  std::string id_of(int index) const { return index < 0 ? "x" : drafts_[static_cast<size_t>(index)].node.id; }

  void check_used() {
    std::vector<bool> used(drafts_.size());
    for (const Draft& draft : drafts_)
      for (const int input : draft.inputs)
        if (input >= 0) used[static_cast<size_t>(input)] = true;
    for (size_t i = 0; i + 1 < drafts_.size(); ++i)
      if (!used[i])
        diagnostics_.error(drafts_[i].tree->find("id")->place, "no node reads '" + drafts_[i].node.id + "'")
            .notes.push_back("the last node, '" + drafts_.back().node.id + "', is the block's output");
    if (!drafts_.empty() && used.back())
      diagnostics_.error(
          drafts_.back().tree->find("id")->place,
          "the last node is the block's output, but another node reads '" + drafts_.back().node.id + "'");
  }

  // -- settings and widths
  // -------------------------------------------------------------------------------------

  Scope scope_of(const Draft& draft, std::initializer_list<const char*> tables) const {
    Scope scope{};
    for (const char* name : tables) scope = scope.narrowed(context_.root.valid(name));
    scope = scope.narrowed(draft.tree);
    for (const Tree* layer : context_.layer_tables) scope = scope.narrowed(layer->valid(draft.node.op));
    return scope;
  }

  int64_t width_of(int input) const {
    return input < 0 ? context_.description.model.d_model : drafts_[static_cast<size_t>(input)].node.width;
  }

  void settle(Draft& draft) {
    BlockNode& node = draft.node;
    const Description& description = context_.description;
    node.width = width_of(draft.inputs[0]);
    if (node.op == "attention") {
      const Scope scope = scope_of(draft, {"model", "attention"});
      node.memory = scope.text("source", "x") == "memory";
      node.attention = resolve_attention(scope, description, !node.memory, diagnostics_);
      for (const char* key : {"window", "window_after", "prefix"})
        if (const Tree* written = node.memory ? draft.tree->find(key) : nullptr; written && !written->refused)
          diagnostics_.error(written->key, "'" + std::string(key) + "' is for self-attention: this node reads the memory");
      if (node.memory && !context_.may_read_memory)
        diagnostics_.error(scope.place("source"),
                           "there is no memory here: it is the encoder's output, for layers of "
                           "the decoder of an encoder-decoder");
    } else if (node.op == "ffn") {
      node.ffn = resolve_ffn(scope_of(draft, {"model", "ffn"}), description, diagnostics_);
    } else if (node.op == "norm") {
      node.norm = resolve_norm(scope_of(draft, {"norm"}), diagnostics_);
    } else if (node.op == "residual") {
      node.residual = resolve_residual(scope_of(draft, {"model", "residual"}));
      needs_equal_widths(draft);
    } else if (node.op == "linear") {
      const Scope scope{draft.tree};
      node.out = scope.integer("out", description.model.d_model);
      node.bias = scope.flag("bias", true);
      node.width = node.out;
    } else if (node.op == "activation") {
      node.kind = Scope{draft.tree}.text("kind", "gelu");
    } else {
      needs_equal_widths(draft);
    }
  }

  void needs_equal_widths(const Draft& draft) {
    if (context_.description.model.d_model == 0) return;
    for (size_t i = 1; i < draft.inputs.size(); ++i) {
      const int64_t width = width_of(draft.inputs[i]);
      if (width == draft.node.width) continue;
      diagnostics_.error(draft.input_places[i], "widths differ: '" + draft.node.inputs[0] + "' is " +
                                                    std::to_string(draft.node.width) + " wide, '" +
                                                    draft.node.inputs[i] + "' is " + std::to_string(width));
    }
  }

  void check_output() {
    const int64_t d_model = context_.description.model.d_model;
    const BlockNode& last = drafts_.back().node;
    if (d_model == 0 || last.width == d_model) return;
    diagnostics_.error(last.place, "the block's output '" + last.id + "' is " + std::to_string(last.width) +
                                       " wide, expected d_model = " + std::to_string(d_model));
  }

  /// [layers.X] with settings for an op that the block does not have.
  void check_layer_tables() {
    for (const Tree* layer : context_.layer_tables)
      for (const auto& [op, table] : layer->members) {
        const auto has_op = [&, name = op](const Draft& draft) { return draft.node.op == name; };
        if (!table.refused && std::none_of(drafts_.begin(), drafts_.end(), has_op))
          diagnostics_.warning("unused-key", table.key,
                               "no effect: the block '" + context_.name + "' has no " + op + " node");
      }
  }

  const Tree& nodes_;
  const BlockContext& context_;
  ir::Diagnostics& diagnostics_;
  const int errors_before_;
  int errors_hidden_ = 0;  // nodes with errors that were reported before
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<BlockNode> resolve_nodes(const Tree& nodes, const BlockContext& context,
                                     ir::Diagnostics& diagnostics) {
  return NodeResolver(nodes, context, diagnostics).run();
}

}  // namespace tfc::frontend
