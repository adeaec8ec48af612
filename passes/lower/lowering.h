// Node -> kernel calls. passes/lower/<family>.cpp has lower_NAME for every primitive, and lower_fused_KERNEL
// for fused nodes; this is what they see. The kernel's side of each family is codegen/kernels/<family>.cpp:
// the order of arguments in a record is the order of slots there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/module.h"
#include "ir/plan.h"

namespace tfc::passes {

/// Where a value's elements are: rows of `width` elements, `stride` elements from row to row (larger than the
/// width for views into a wider buffer: results of split, operands of concat). Everything else is contiguous.
struct Location {
  ir::Arg pointer;   // to the first element
  int64_t stride = 0;  // in elements
  int64_t width = 0;
};

class Lowering {
 public:
  virtual ~Lowering() = default;

  virtual const ir::Module& module() const = 0;
  virtual const ir::Graph& graph() const = 0;
  virtual ir::NodeId id() const = 0;
  const ir::Node& node() const { return graph().node(id()); }
  const ir::Attributes& attributes() const { return node().attributes; }
  ir::Value operand(uint32_t slot) const { return graph().operand(id(), slot); }
  ir::Value result(uint32_t index = 0) const { return {id(), index}; }
  const ir::Type& type(ir::Value value) const { return graph().type(value); }

  /// Is the result read by anybody? Kernels may skip what nobody reads (locate gives a null pointer then).
  virtual bool used(ir::Value value) const = 0;

  /// Memory of an operand or result. An absent operand gives a null pointer (index -1).
  virtual Location locate(ir::Value value) = 0;
  ir::Arg pointer(ir::Value value) { return locate(value).pointer; }

  /// Is the result added to what its memory holds, instead of stored there? Asked of linear_dw, column_sum,
  /// embedding_grad and linear_loss_grad's dw, which accumulate-in-place fuses with such a sum.
  virtual bool accumulates(ir::Value result) const { return false; }

  /// u8 for each row of a value [B, T or S, ...]: 1 where it is a token. The others are padding: nothing of them is
  /// ever read, so that a kernel may leave them as they are. A null pointer where every row is to be made.
  virtual ir::Arg real_rows(ir::Value) { return {ir::Arg::Kind::Pointer, ir::Space::Workspace, -1, {}}; }

  /// The same for products. `zeros`: the entry has gradients, whose sums over rows read all: what is not made is zero.
  struct ProductRows {
    ir::Arg mask{ir::Arg::Kind::Pointer, ir::Space::Workspace, -1, {}};
    bool zeros = false;
  };
  virtual ProductRows product_rows(ir::Value) { return {}; }

  /// Workspace that lives only while this node's records run.
  virtual ir::Arg temporary(const std::string& name, ir::Dim bytes) = 0;

  /// A constant blob of doubles; equal names share one.
  virtual ir::Arg constant(const std::string& name, const std::vector<double>& values) = 0;

  /// One kernel call. `record.node` is filled in.
  virtual void call(ir::Record record) = 0;

  /// Records made by `body` run `iterations` times; Symbol::I is the index in them.
  virtual void loop(ir::Dim iterations, const std::function<void()>& body) = 0;

  /// "f32" or "f64": the attribute `f` of most kernels.
  std::string real_name() const { return std::string(ir::dtype_name(module().real)); }

  static ir::Arg integer(ir::Dim value) { return {ir::Arg::Kind::Integer, ir::Space::Workspace, 0, std::move(value)}; }
  /// The same memory, `bytes` further on.
  static ir::Arg advance(ir::Arg pointer, const ir::Dim& bytes) {
    pointer.value = pointer.value + bytes;
    return pointer;
  }
};

#define TFC_OP(name, text, least, most, results, padding) void lower_##name(Lowering&);
#define TFC_GRAD_OP(name, text, least, most, results, padding) void lower_##name(Lowering&);
#include "ir/ops.def"

/// Fused nodes, by their attribute `kernel`.
void lower_fused(Lowering&);

/// What belongs to no node of its own: outputs that no kernel makes in place, and leaves of zeros. Rows of
/// `to.width` elements of `type`'s element type, strides as the locations say (passes/lower/copy.cpp).
void write_copy(Lowering&, const Location& to, const Location& from, const ir::Type& type);
void write_zeros(Lowering&, const Location& to, const ir::Type& type);

}  // namespace tfc::passes
