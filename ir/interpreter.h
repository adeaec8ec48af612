// The specification of every operation, in float64: plain loops, no blocking, no fusion. Slow and readable;
// compiled code is compared with it. The rules of single operations are eval_NAME in ir/ops/*.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace tfc::ir {

/// A concrete value, row-major. Integers and masks are held as doubles too.
struct Tensor {
  DType dtype = DType::F64;
  std::vector<int64_t> shape;
  std::vector<double> data;

  Tensor() = default;
  Tensor(DType dtype, std::vector<int64_t> shape);  // zeros
  Tensor(DType dtype, std::vector<int64_t> shape, std::vector<double> data);

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t width() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return width() == 0 ? 0 : elements() / width(); }
  int64_t elements() const { return static_cast<int64_t>(data.size()); }
  double* row(int64_t r) { return data.data() + r * width(); }
  const double* row(int64_t r) const { return data.data() + r * width(); }
  double& operator[](int64_t i) { return data[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return data[static_cast<size_t>(i)]; }
};

/// The type's sizes at a point.
std::vector<int64_t> shape_at(const Type& type, const Point& point);

/// Runs graphs of primitives (phases ops and later). Memory between calls lives here: parameters, gradients
/// and moments as blocks of Module::parameter_block() doubles in layout order, cache tensors by name.
class Interpreter {
 public:
  Interpreter(const Module& module, const Point& point);

  Point point;                              // sizes of the next run
  std::map<std::string, Tensor> inputs;     // by the name of the input leaf
  std::vector<double>& block(Space space);  // Params, Grads, Moment1, Moment2; zeros at first
  std::map<std::string, Tensor> cache;      // tensors of space cache; made with zeros when first read
  std::map<std::string, Tensor> edits;      // of space edits (ir/edits.h); zeros, which change nothing, where absent

  /// A parameter, or neighbours "a+b", out of a block: its elements. `name` "*": all that is not frozen.
  std::vector<double> read(Space space, const std::string& name);
  void write(Space space, const std::string& name, const std::vector<double>& elements);

  /// Computes every value of the graph. A missing input, or one of another shape, is a compiler fault:
  /// callers check what users give them.
  void run(const Graph& graph);
  const Tensor& value(Value value) const;               // of the last run
  const Tensor& output(const std::string& name) const;  // of the last run's graph

  /// Stores the last run's outputs named "params:X", "grads:X", "moment1:X", "moment2:X" and "cache:X" in
  /// their memory, as a compiled entry does.
  void commit();

 private:
  using Values = std::vector<std::vector<Tensor>>;  // by node id, by result
  Tensor leaf(const Node& node, const std::vector<Tensor>* arguments);
  void run_graph(const Graph& graph, const std::vector<Tensor>* arguments, Values& values);
  void run_node(const Graph& graph, NodeId id, const std::vector<Tensor>* arguments, Values& values);

  const Module& module_;
  std::map<Space, std::vector<double>> blocks_;
  std::map<std::string, std::pair<int64_t, int64_t>> extent_;  // parameter -> offset, elements
  const Graph* last_ = nullptr;
  Values values_;
};

}  // namespace tfc::ir
