// The state of expansion: a graph of blocks on one side, the growing graph of primitives on the other.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "passes/expand/init.h"

namespace tfc::passes {

/// The function inside a gated activation, or "" for a plain one.
std::string gate_function(const std::string& activation);

class Expander {
 public:
  Expander(ir::Module& module, const ir::Graph& blocks);

  /// Walks the blocks in topological order; afterwards `result` is the graph of primitives.
  void run();
  ir::Graph result;

 private:
  // One method for each block (expand/<block>.cpp). `id` names the block; the return value is what replaces
  // its first result.
  ir::Value embedding(ir::NodeId id);
  ir::Value patches(ir::NodeId id, ir::Value image, const std::string& position);
  ir::Value projected(ir::NodeId id, ir::Value x);
  ir::Value finished_embedding(ir::NodeId id, ir::Value x);
  ir::Value attention(ir::NodeId id);
  ir::Value ffn(ir::NodeId id);
  ir::Value experts(ir::NodeId id);  // an ffn with experts
  ir::Value norm(ir::NodeId id);
  ir::Value residual(ir::NodeId id);
  ir::Value layer_scaled(ir::NodeId id, const std::vector<ir::Value>& branches);
  ir::Value linear_block(ir::NodeId id);
  ir::Value head(ir::NodeId id);
  ir::Value transformed(ir::NodeId id, ir::Value x);
  void loss(ir::NodeId id);
  bool brings_balance(ir::NodeId loss) const;
  void input(ir::NodeId id);
  ir::Value expand_block(ir::NodeId id);

  const ir::Node& block(ir::NodeId id) const { return blocks_.node(id); }
  const ir::Attributes& attributes(ir::NodeId id) const { return blocks_.node(id).attributes; }
  /// What an operand of a block became; invalid when absent.
  ir::Value operand(ir::NodeId id, uint32_t slot) const;
  /// An input that is an operand of no block ("positions"), for own or source tokens ("src_positions"); invalid
  /// where the model does not declare it.
  ir::Value declared(const std::string& name, const ir::Dim& tokens) const;

  ir::Value add(ir::OpKind op, const std::vector<ir::Value>& operands, ir::Attributes attributes,
                std::string name);
  /// What a node that is named after its parameters is called: in a shared block, after its layer.
  std::string own_name(std::string name) const;
  /// The parameter's node; the parameter is created when it is first asked for. `joined`: it follows the
  /// parameter created before it without a gap.
  ir::Value parameter(const std::string& name, const std::vector<int64_t>& shape, ir::Init init,
                      bool joined = false);
  void declare(const std::string& name, const std::vector<int64_t>& shape, ir::Init init, bool joined);
  ir::Value parameter_node(const std::string& name, const std::vector<int64_t>& shape);
  /// A node that reads neighbours "a+b+c", the parts of an expert's (`part`: "up.weight") for all experts in turn, as
  /// one matrix; they are made when they are first asked for.
  ir::Value joined_parts(const std::string& prefix, int64_t experts, const std::vector<std::string>& parts,
                         const std::vector<int64_t>& shape, ir::Init init);
  /// x W^T + b with existing parameters PREFIX.weight, PREFIX.bias, and the adapter of a target.
  ir::Value linear(ir::Value x, const std::string& prefix, bool bias);
  ir::Value adapted(ir::Value y, ir::Value x, const std::string& prefix);
  ir::Value existing(const std::string& name) const { return parameters_.at(name); }
  ir::Value apply_norm(ir::Value x, const std::string& prefix, const std::string& type, double eps,
                       bool bias);
  ir::Value masked(ir::Value x, ir::Value mask, std::string name);
  /// The elements of x that dropout leaves; x itself where p is 0. The name is the place that its draws depend on.
  ir::Value dropped(ir::Value x, double p, std::string name);
  ir::Value dropped(ir::Value x, double p, std::string name, ir::Value keys);
  ir::Value dropout_keys(const ir::Type& rows);
  /// u8[B]: rows that have a token; invalid without a mask.
  ir::Value any_real(ir::Value mask, std::string name);
  ir::Value learned_positions(ir::NodeId id, ir::Value x);
  ir::Value rope_table(ir::NodeId id, const ir::Dim& tokens);
  ir::Value sinusoid(const ir::Dim& tokens, int64_t width);
  void add_sight(ir::NodeId id, ir::Value x, ir::Value memory, std::vector<ir::Value>& operands,
                 ir::Attributes& settings);
  ir::Value rotated(ir::NodeId id, ir::Value x, int64_t heads, std::string name);
  void attention_parameters(ir::NodeId id, int64_t own_width, int64_t memory_width);
  int64_t width(ir::Value value) const;

  ir::Module& module_;
  const ir::Graph& blocks_;
  const Initialiser initialiser_;
  std::map<ir::Value, ir::Value> values_;                   // block result -> what it became
  std::unordered_map<std::string, ir::Value> parameters_;   // by name: a tied table is one node
  std::map<std::string, ir::Value> position_tables_;        // by text of their settings: one for each stack
  std::map<std::string, ir::Value> dropout_keys_;           // by tokens
  struct Head {
    ir::Value hidden, weight, bias, mask;  // mask: of the rows of hidden
  };
  std::map<ir::NodeId, Head> heads_;                        // what the loss needs of a head, by block
  std::vector<ir::Value> balances_;                         // balancing losses of the experts
  std::map<std::string, std::string> tied_;  // tables that are also output projections -> what makes their rows D wide, or ""
  ir::Place place_;                                         // of the block in work
  std::string shared_, layer_;                              // and where its parameters and its nodes are, if apart
};

}  // namespace tfc::passes
