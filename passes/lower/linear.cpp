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

/// C = result 0, A and B = operands 0 and 1.
Product product_of(Lowering& lowering, const std::string& form) {
  Product product;
  product.form = form;
  product.c = lowering.locate(lowering.result());
  product.a = lowering.locate(lowering.operand(0));
  product.b = lowering.locate(lowering.operand(1));
  return product;
}

}  // namespace

void lower_Linear(Lowering& lowering) {
  const ir::Type& w = lowering.type(lowering.operand(1));
  Product product = product_of(lowering, "nt");
  if (lowering.operand(2).valid()) product.bias = lowering.pointer(lowering.operand(2));
  product.m = lowering.type(lowering.operand(0)).rows();
  product.n = static_size(w.shape[0]);
  product.k = w.shape[1];
  set_rows(lowering, product, lowering.operand(0));
  lower_product(lowering, product);
}

void lower_LinearDx(Lowering& lowering) {
  const ir::Type& w = lowering.type(lowering.operand(1));
  Product product = product_of(lowering, "nn");
  product.m = lowering.type(lowering.operand(0)).rows();
  product.n = static_size(w.shape[1]);
  product.k = w.shape[0];
  set_rows(lowering, product, lowering.operand(0));
  lower_product(lowering, product);
}

void lower_LinearDw(Lowering& lowering) {
  const ir::Type& dw = lowering.type(lowering.result());
  Product product = product_of(lowering, "tn");
  product.m = dw.shape[0];
  product.n = static_size(dw.shape[1]);
  product.k = lowering.type(lowering.operand(0)).rows();
  product.accumulate = lowering.accumulates(lowering.result()) ? 1 : 0;
  set_rows(lowering, product, lowering.operand(0));
  lower_product(lowering, product);
}

void lower_ColumnSum(Lowering& lowering) {
  const ir::Dim rows = lowering.type(lowering.operand(0)).rows();
  lower_column_sum(lowering, lowering.attributes(), lowering.pointer(lowering.result()),
                   lowering.locate(lowering.operand(0)), rows, rows, lowering.accumulates(lowering.result()) ? 1 : 0);
}

}  // namespace tfc::passes
