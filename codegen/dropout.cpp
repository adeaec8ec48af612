#include "codegen/dropout.h"

#include "ir/dropout.h"

namespace tfc::codegen {

namespace {

Val exclusive_or(KernelBuilder& k, Val a, Val b) {
  k.match(a, b);
  return k.wrap(k.ir().CreateXor(a.raw(), b.raw()));
}

Val shifted_right(KernelBuilder& k, Val a, int bits) {
  llvm::Value* amount = llvm::ConstantInt::get(a.raw()->getType(), static_cast<uint64_t>(bits));
  return k.wrap(k.ir().CreateLShr(a.raw(), amount));
}

/// (x ^ x >> bits) * factor
Val scrambled(KernelBuilder& k, Val x, int bits, int64_t factor) {
  if (!x.raw()->getType()->getScalarType()->isIntegerTy(64)) factor = static_cast<int32_t>(factor);
  return exclusive_or(k, x, shifted_right(k, x, bits)) * factor;
}

}  // namespace

Val Dropout::stream(Val place, Val head) const {
  const Val z = scrambled(k_, scrambled(k_, place + head, 30, static_cast<int64_t>(0xbf58476d1ce4e5b9)), 27,
                          static_cast<int64_t>(0x94d049bb133111eb));
  return exclusive_or(k_, z, shifted_right(k_, z, 31));
}

DropoutRow Dropout::row(Ptr keys, Val row, Val stream) const {
  const Ptr key = k_.at(keys, row * 3);
  return {exclusive_or(k_, k_.load(key, k_.index(0)), narrow(stream)),
          exclusive_or(k_, k_.load(key, k_.index(1)), narrow(shifted_right(k_, stream, 32))),
          k_.load(key, k_.index(2)) != 0};
}

Val Dropout::keeps(const DropoutRow& row, Val columns) const {
  if (ir::dropout_threshold(p_) >= uint64_t{1} << 32) {
    return k_.splat(!row.drops, std::max(columns.lanes(), row.first.lanes()));
  }
  Val x = scrambled(k_, exclusive_or(k_, columns, row.first), 17, 0xed5ad4bb) + row.second;
  x = scrambled(k_, scrambled(k_, x, 11, 0xac4c1b51), 15, 0x31848bab);
  const auto threshold = static_cast<int32_t>(static_cast<uint32_t>(ir::dropout_threshold(p_)));
  Val least = k_.select(row.drops, k_.wrap(k_.ir().getInt32(static_cast<uint32_t>(threshold))),
                        k_.wrap(k_.ir().getInt32(0)));
  k_.match(x, least);
  return k_.wrap(k_.ir().CreateICmpUGE(x.raw(), least.raw()));
}

Val Dropout::scale(const DropoutRow& row) const {
  return k_.select(row.drops, k_.number(ir::dropout_scale(p_)), k_.number(1));
}

Val Dropout::apply(const DropoutRow& row, Val start, Val x) const {
  return k_.select(keeps(row, columns(start, x.lanes())), x * scale(row), k_.same_type_constant(x, 0.0));
}

Val Dropout::narrow(Val numbers) const {
  llvm::Type* type = numbers.raw()->getType()->getWithNewType(k_.ir().getInt32Ty());
  return k_.wrap(k_.ir().CreateTrunc(numbers.raw(), type));
}

Val Dropout::columns(Val start, int lanes) const {
  if (lanes == 1) return narrow(start);
  return k_.splat(narrow(start), lanes) + narrow(k_.lane_numbers(lanes));
}

}  // namespace tfc::codegen
