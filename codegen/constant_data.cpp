#include "codegen/constant_data.h"

#include <cstdint>

#include "ir/check.h"
#include "llvm/Support/LEB128.h"

namespace tfc::codegen {

using llvm::Constant;

Constant* ConstantData::i32(int64_t value) {
  return llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context_), value);
}
Constant* ConstantData::i64(int64_t value) {
  return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context_), value);
}
Constant* ConstantData::f64(double value) {
  return llvm::ConstantFP::get(llvm::Type::getDoubleTy(context_), value);
}
Constant* ConstantData::null_pointer() {
  return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context_));
}

llvm::GlobalVariable* ConstantData::global(const std::string& name, Constant* value) {
  auto* result = new llvm::GlobalVariable(module_, value->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::InternalLinkage, value, name);
  result->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return result;
}

Constant* ConstantData::text(const std::string& value) {
  Constant*& known = texts_[value];
  if (!known) known = global("text", llvm::ConstantDataArray::getString(context_, value));
  return known;
}

Constant* ConstantData::structure(std::vector<Constant*> members) {
  return llvm::ConstantStruct::getAnon(context_, members);
}

Constant* ConstantData::array_value(std::vector<Constant*> elements) {
  return llvm::ConstantArray::get(llvm::ArrayType::get(elements.front()->getType(), elements.size()), elements);
}

Constant* ConstantData::array(const std::string& name, const std::vector<Constant*>& elements) {
  return elements.empty() ? null_pointer() : global(name, array_value(elements));
}

Constant* ConstantData::doubles(const std::string& name, const std::vector<double>& values) {
  auto* result = global(name, llvm::ConstantDataArray::get(context_, values));
  result->setAlignment(llvm::Align(64));
  return result;
}

Constant* ConstantData::bytes(const std::string& name, const void* data, size_t size) {
  if (size == 0) return null_pointer();
  const llvm::StringRef text(static_cast<const char*>(data), size);
  auto* result = global(name, llvm::ConstantDataArray::getString(context_, text, /*AddNull=*/false));
  result->setAlignment(llvm::Align(16));
  return result;
}

int32_t ConstantData::program(const ir::Dim& expression) {
  auto [known, added] = programs_.emplace(expression, static_cast<int32_t>(code_.size()));
  if (!added) return known->second;
  std::vector<int64_t> words;
  expression.encode(words);
  for (int64_t word : words) {
    uint8_t bytes[10];
    code_.insert(code_.end(), bytes, bytes + llvm::encodeSLEB128(word, bytes));
  }
  TFC_CHECK(code_.size() <= INT32_MAX, "the programs of the plans' sizes have more than 2 GiB");
  return known->second;
}

Constant* ConstantData::code_array() { return plain_array("code", code_); }

int32_t ConstantData::string_start(const std::string& value) {
  auto [known, added] = string_starts_.emplace(value, static_cast<int32_t>(strings_.size()));
  if (added) strings_.append(value.c_str(), value.size() + 1);
  return known->second;
}

Constant* ConstantData::strings() { return bytes("strings", strings_.data(), strings_.size()); }

}  // namespace tfc::codegen
