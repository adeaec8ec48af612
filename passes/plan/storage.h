// Where every value of a graph lives: workspace, parameters, state, inputs and outputs, and which values
// share storage.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/module.h"
#include "passes/lower/lowering.h"
#include "passes/plan/cache_layout.h"

namespace tfc::passes {

/// Decides storage once for the graph, and makes buffers as they are asked for.
///
///   results of split      columns of the split value: no copy
///   operands of concat    columns of the concat's result, when a kernel makes them for it alone
///   first operands of elementwise kernels   where the result will be, when nobody else reads them
///   donated operands      the result takes over their storage
///   outputs               made in place: in the caller's memory, or in the state that the output's name
///                         names; inputs, views and second names of a value are copied. Taps: in a buffer each
class Storage {
 public:
  struct Copy {
    ir::Value value;
    Location to;
    bool at_end;  // when all else has run: the value is no node's result, or `to` is read before
  };

  Storage(const ir::Module& module, const CacheLayout& cache, const ir::Graph& graph, ir::Plan& plan);

  bool used(ir::Value value) const;
  Location locate(ir::Value value);
  ir::Arg new_buffer(std::string name, ir::Dim bytes);
  const std::vector<Copy>& copies() const { return copies_; }

  /// All operands of the concat lie in its result: it has nothing to do.
  bool concat_is_in_place(ir::NodeId id) const { return placed_concats_[id.index]; }

 private:
  void add_externals();
  void place_outputs();
  void place_output(const ir::Output& output, int external);
  void place_tap(const ir::Output& output);
  void place(ir::Value value, const Location& to);
  bool has_own_storage(ir::Value value) const;
  void place_concats();
  void place_in_results();
  bool can_be_placed(ir::Value value) const;
  Location whole(ir::Arg pointer, const ir::Type& type) const;
  ir::Arg state_memory(const std::string& space, const std::string& name) const;
  ir::Arg external_of_input(const std::string& name) const;
  std::optional<Location> shared(ir::Value value);
  Location find(ir::Value value);

  const ir::Module& module_;
  const std::unordered_map<std::string_view, size_t> parameter_numbers_;
  const std::vector<std::string> edited_names_;
  const CacheLayout& cache_;
  const ir::Graph& graph_;
  ir::Plan& plan_;
  std::map<ir::Value, Location> places_;            // known so far
  std::map<ir::Value, int> output_count_;
  struct Column {
    ir::Value whole;
    int64_t offset;
  };
  std::map<ir::Value, Column> columns_;             // operands placed in a concat, or where a result will be
  std::vector<bool> placed_concats_;
  std::set<ir::Space>
      read_spaces_;  // of which the graph reads state: what only a donation may overwrite before the end
  std::map<std::string, int> inputs_;               // name -> external
  std::vector<Copy> copies_;
};

}  // namespace tfc::passes
