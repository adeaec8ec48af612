// linear and its gradients: three forms of one product.
#include "ir/check.h"
#include "passes/lower/product_plan.h"

namespace tfc::passes {

using ir::Dim;

namespace {

int64_t static_size(const Dim& dim) {
  TFC_CHECK(dim.constant().has_value(), "a weight has a size that is not fixed: " + dim.text());
  return *dim.constant();
}

}  // namespace

void lower_Linear(Lowering& lowering) {
  const ir::Type& x = lowering.type(lowering.operand(0));
  const ir::Type& w = lowering.type(lowering.operand(1));
  Product product{.form = "nt",
                  .c = lowering.locate(lowering.result()),
                  .a = lowering.locate(lowering.operand(0)),
                  .b = lowering.locate(lowering.operand(1))};
  if (lowering.operand(2).valid()) product.bias = lowering.pointer(lowering.operand(2));
  product.m = x.rows(), product.n = static_size(w.shape[0]), product.k = w.shape[1];
  lower_product(lowering, product);
}

void lower_LinearDx(Lowering& lowering) {
  const ir::Type& w = lowering.type(lowering.operand(1));
  Product product{.form = "nn",
                  .c = lowering.locate(lowering.result()),
                  .a = lowering.locate(lowering.operand(0)),
                  .b = lowering.locate(lowering.operand(1))};
  product.m = lowering.type(lowering.operand(0)).rows(), product.n = static_size(w.shape[1]), product.k = w.shape[0];
  lower_product(lowering, product);
}

void lower_LinearDw(Lowering& lowering) {
  const ir::Type& dy = lowering.type(lowering.operand(0));
  const ir::Type& dw = lowering.type(lowering.result());
  Product product{.form = "tn",
                  .c = lowering.locate(lowering.result()),
                  .a = lowering.locate(lowering.operand(0)),
                  .b = lowering.locate(lowering.operand(1))};
  product.m = dw.shape[0], product.n = static_size(dw.shape[1]), product.k = dy.rows();
  lower_product(lowering, product);
}

void lower_ColumnSum(Lowering& lowering) {
  lower_column_sum(lowering, lowering.pointer(lowering.result()), lowering.locate(lowering.operand(0)),
                   lowering.type(lowering.operand(0)).rows(), 0);
}

}  // namespace tfc::passes
