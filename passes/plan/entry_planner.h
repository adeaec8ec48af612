// The plan of one entry: what the lowering functions see.
#pragma once

#include <set>

#include "passes/plan/storage.h"

namespace tfc::passes {

/// What is done about the rows that masks call padding.
enum class Padding {
  Made,    // as others: an operation may read them
  Left,    // nothing reads them: kernels leave what they like
  Zeroed,  // products make them zeros: sums over rows read them, and find that their gradients are zero
};

class EntryPlanner : public Lowering {
 public:
  EntryPlanner(ir::Module& module, const CacheLayout& cache, const ir::Graph& graph, const ir::Point& point);
  ir::Plan run();

  const ir::Module& module() const override { return module_; }
  const ir::Graph& graph() const override { return graph_; }
  ir::NodeId id() const override { return current_; }
  bool used(ir::Value value) const override { return storage_.used(value); }
  Location locate(ir::Value value) override { return storage_.locate(value); }
  ir::Arg real_rows(ir::Value value) override;
  ProductRows product_rows(ir::Value value) override;
  ir::Arg temporary(const std::string& name, ir::Dim bytes) override;
  ir::Arg constant(const std::string& name, const std::vector<double>& values) override;
  void call(ir::Record record) override;
  void loop(ir::Dim iterations, const std::function<void()>& body) override;

 private:
  void lower(ir::NodeId id);
  void fill_zeros(ir::NodeId id);
  void copy_output(const Storage::Copy& copy);
  ir::Arg mask_of(ir::Value value);

  ir::Module& module_;
  const ir::Graph& graph_;
  const ir::Point& point_;
  ir::Plan plan_;
  Storage storage_;
  ir::NodeId current_;
  std::string record_name_;
  bool in_loop_ = false;
  const Padding padding_;
  std::multimap<ir::NodeId, Storage::Copy> copies_;  // to be made as soon as the node has run
  std::set<ir::NodeId> filled_;  // leaves of zeros that have their memory
};

/// Sets first and last of every buffer: the records that touch it; a buffer that a loop touches lives for all
/// of it, and one that a tap shows to the end.
void set_lifetimes(ir::Plan& plan);

}  // namespace tfc::passes
