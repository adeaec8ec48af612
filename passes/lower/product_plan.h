// How products are cut into tasks, by their shapes alone. The kernel's side is codegen/kernels/product.cpp.
#pragma once

#include <optional>
#include <string>

#include "passes/lower/dropout.h"
#include "passes/lower/lowering.h"

namespace tfc::passes {

inline ir::Arg null_pointer() { return {ir::Arg::Kind::Pointer, ir::Space::Workspace, -1, ir::Dim()}; }

/// Rows of a mixture of experts: expert e's are starts[e]..starts[e+1] (i32, `count` + 1 of them).
struct ExpertRows {
  ir::Arg starts;
  int64_t count = 0;
};

/// C[m,n] (+)= A B. Form "nt": A [m,k], B as [n,k]; "nn": A [m,k], B [k,n]; "tn": A as [k,m], B [k,n].
struct Product {
  std::string form;
  Location c, a, b;
  ir::Arg bias = null_pointer();
  ir::Dim m, k;
  std::optional<ir::Dim> greatest_k;  // in any iteration, where k is of one iteration of a loop
  int64_t n = 0;
  ir::Dim accumulate = 0;  // 1: C keeps what it has
  /// Each expert's rows of A with a B and bias of its own, which follow each other in memory; form tn: each expert's
  /// rows of A and B make a C of their own. Then m, of tn k, counts all rows.
  std::optional<ExpertRows> experts;

  // out = x + scale * (others + dropout(gamma * activation(C))), each part where it is asked for, or
  // out = slope'(x) * dropout(C), where asked for with activated = slope(x); out may be C. gamma has a factor for
  // each column.
  std::string activation, slope;
  std::optional<DropoutCall> dropout;
  std::optional<double> residual_scale;
  ir::Arg gamma = null_pointer();
  std::vector<Location> others;  // added left to right
  Location out, x;
  Location activated{null_pointer()};

  ir::Arg real = null_pointer();  // u8 [m]: rows of C to make; of tn u8 [k]: rows of A and B that there are
  bool fills = false;             // the others of C become zeros; else they are left as they are
};

/// The product makes the rows that `value` has, an operand or result of it.
void set_rows(Lowering& lowering, Product& product, ir::Value value);

/// Calls the product's kernel, and for a long `k` of a small result the sum of its parts.
void lower_product(Lowering& lowering, const Product& product);

/// out[n] (+)= column sums of dy [rows, n], as the attributes of a column_sum node say. In a loop `rows` are
/// those of one iteration and `greatest_rows` of any.
void lower_column_sum(Lowering& lowering, const ir::Attributes& attributes, ir::Arg out, const Location& dy,
                      const ir::Dim& rows, const ir::Dim& greatest_rows, const ir::Dim& accumulate);

ir::Attributes real_attribute(const Lowering& lowering);

}  // namespace tfc::passes
