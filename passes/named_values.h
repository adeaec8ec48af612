// Values by the names that a description may call them.
#pragma once

#include "passes/pass.h"

namespace tfc::passes {

struct NamedValue {
  std::string name;
  ir::Value value;
  std::string refusal = {};  // why it is not to be chosen; "": it may be
};

/// In the order of the graph: of every node that makes reals its first result, by the node's name; the parts of a joined
/// product by the names that they had ("layers.0.attn.q" of "layers.0.attn.q+k+v.split").
std::vector<NamedValue> named_values(const ir::Graph& graph);

/// These, and after each attention PREFIX "PREFIX.weights", for which its log-sum stands: what can be looked at.
std::vector<NamedValue> tappable_values(const ir::Graph& graph);

/// Those of `values` that some glob names, each once, in the order of the globs. A glob that names none is an error, with
/// the nearest name, or the refusal where it names some that are not to be chosen; `key` is where it stands ("taps").
std::vector<NamedValue> values_named_by(const std::vector<ir::Freeze>& globs, const std::vector<NamedValue>& values,
                                        const std::string& key, ir::Diagnostics& diagnostics);

}  // namespace tfc::passes
