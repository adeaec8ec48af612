// Pieces of derive-entries: each makes the graph of one entry from the model's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace tfc::passes {

/// A copy of the model's graph with these of its outputs and its taps, and only what they need.
ir::Graph with_outputs(const ir::Graph& model, const std::vector<std::string>& names);

/// The model as it infers: without dropout.
ir::Graph without_dropout(const ir::Graph& model);

/// The taps of the model's graph, for an entry's graph that is a copy of it.
void append_taps(ir::Graph& graph, const ir::Graph& model);

/// The weights of an attention as a value of their own; the mask (or an invalid value) says which queries are tokens.
ir::NodeId add_attention_weights(ir::Graph& graph, ir::NodeId attention, ir::Value query_mask, const std::string& name);

/// The model with the weights of attention in place of the log-sums that stood for them.
ir::Graph with_attention_weights(const ir::Graph& model);

/// Leaves out the taps that need an input which the entry does not have.
void drop_taps_of_inputs(ir::Graph& graph, const std::function<bool(const std::string&)>& absent);

/// The product that makes a language model's logits; invalid where the model has none.
ir::NodeId logits_product(const ir::Module& module, const ir::Graph& model);

/// The output that `last` and `decode` are about; there is one.
ir::Value main_output(const ir::Module& module, const ir::Graph& model);

ir::Value add_input(ir::Graph& graph, const std::string& name, ir::Type type);
ir::Value add_state(ir::Graph& graph, std::string_view space, const std::string& name, ir::Type type);

ir::Graph derive_last(const ir::Module& module, const ir::Graph& model);
ir::Graph derive_step(const ir::Module& module);
ir::Graph derive_decode(const ir::Module& module, const ir::Graph& model);
ir::Graph derive_encode(const ir::Module& module, const ir::Graph& model);

/// Adds each adapter to its weight and clears its second matrix, in place; a graph without nodes where there
/// is none.
ir::Graph derive_merge(const ir::Module& module);

}  // namespace tfc::passes
