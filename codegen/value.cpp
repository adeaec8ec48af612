// Operators and arithmetic of kernel values.
#include "codegen/kernel_builder.h"
#include "ir/check.h"
#include "llvm/IR/Intrinsics.h"

namespace tfc::codegen {

using llvm::Type;
using llvm::Value;

int Val::lanes() const {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v_->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

std::optional<int64_t> Val::constant() const {
  if (auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(v_)) return number->getSExtValue();
  return std::nullopt;
}

void KernelBuilder::match(Val& a, Val& b) {
  if (!a.is_real() && !b.is_real()) {  // integers of different width meet as i64
    const unsigned wa = a.raw()->getType()->getScalarSizeInBits(), wb = b.raw()->getType()->getScalarSizeInBits();
    if (wa != wb) a = to_index(a), b = to_index(b);
  }
  if (a.lanes() < b.lanes()) a = splat(a, b.lanes());
  if (b.lanes() < a.lanes()) b = splat(b, a.lanes());
  TFC_CHECK(a.raw()->getType() == b.raw()->getType(), "operands of a kernel expression have different types");
}

#define TFC_BINARY(op, real_form, integer_form)                                        \
  Val operator op(Val a, Val b) {                                                      \
    KernelBuilder* k = a.builder();                                                    \
    k->match(a, b);                                                                    \
    auto& ir = k->ir();                                                                \
    return k->wrap(a.is_real() ? ir.real_form(a.raw(), b.raw()) : ir.integer_form(a.raw(), b.raw())); \
  }                                                                                    \
  Val operator op(Val a, double b) { return a op a.builder()->same_type_constant(a, b); }  \
  Val operator op(double a, Val b) { return b.builder()->same_type_constant(b, a) op b; }  \
  Val operator op(Val a, int64_t b) { return a op a.builder()->same_type_constant(a, b); } \
  Val operator op(int64_t a, Val b) { return b.builder()->same_type_constant(b, a) op b; }

TFC_BINARY(+, CreateFAdd, CreateAdd)
TFC_BINARY(-, CreateFSub, CreateSub)
TFC_BINARY(*, CreateFMul, CreateMul)
TFC_BINARY(/, CreateFDiv, CreateSDiv)
TFC_BINARY(%, CreateFRem, CreateSRem)
TFC_BINARY(<, CreateFCmpOLT, CreateICmpSLT)
TFC_BINARY(<=, CreateFCmpOLE, CreateICmpSLE)
TFC_BINARY(>, CreateFCmpOGT, CreateICmpSGT)
TFC_BINARY(>=, CreateFCmpOGE, CreateICmpSGE)
TFC_BINARY(==, CreateFCmpOEQ, CreateICmpEQ)
TFC_BINARY(!=, CreateFCmpUNE, CreateICmpNE)
#undef TFC_BINARY

Val operator-(Val a) {
  auto& ir = a.builder()->ir();
  return a.builder()->wrap(a.is_real() ? ir.CreateFNeg(a.raw()) : ir.CreateNeg(a.raw()));
}
Val operator&(Val a, Val b) {
  a.builder()->match(a, b);
  return a.builder()->wrap(a.builder()->ir().CreateAnd(a.raw(), b.raw()));
}
Val operator|(Val a, Val b) {
  a.builder()->match(a, b);
  return a.builder()->wrap(a.builder()->ir().CreateOr(a.raw(), b.raw()));
}
Val operator!(Val a) { return a.builder()->wrap(a.builder()->ir().CreateNot(a.raw())); }

Val KernelBuilder::fma(Val a, Val b, Val c) {
  match(a, b);
  match(a, c);
  match(b, c);
  if (!target_.fma) return a * b + c;
  return wrap(b_.CreateIntrinsic(llvm::Intrinsic::fma, {a.raw()->getType()}, {a.raw(), b.raw(), c.raw()}));
}

Val KernelBuilder::sqrt(Val a) { return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a.raw())); }
Val KernelBuilder::abs(Val a) { return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a.raw())); }
// SSE4.1 has roundps for both, so neither becomes a call from level 2 on.
Val KernelBuilder::floor(Val a) { return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a.raw())); }
Val KernelBuilder::round_to_even(Val a) { return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, a.raw())); }
Val KernelBuilder::min(Val a, Val b) { return select(a < b, a, b); }
Val KernelBuilder::max(Val a, Val b) { return select(a > b, a, b); }

Val fma(Val a, Val b, Val c) {
  KernelBuilder* k = a ? a.builder() : b.builder();
  return k->fma(a, b, c);
}
Val square(Val a) { return a * a; }

}  // namespace tfc::codegen
