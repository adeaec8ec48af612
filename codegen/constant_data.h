// Constants of the generated module, built like C initialisers.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ir/dim.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

namespace tfc::codegen {

/// Makes constants whose layout is that of the C structs with the same members (natural alignment). Strings and
/// expression programs are shared.
class ConstantData {
 public:
  explicit ConstantData(llvm::Module& module) : module_(module), context_(module.getContext()) {}

  llvm::Constant* i32(int64_t value);
  llvm::Constant* i64(int64_t value);
  llvm::Constant* f64(double value);
  llvm::Constant* null_pointer();
  llvm::Constant* text(const std::string& value);              // const char*
  llvm::Constant* structure(std::vector<llvm::Constant*> members);
  llvm::Constant* array_value(std::vector<llvm::Constant*> elements);  // inline array member; not empty
  /// A constant global array; its address. Null pointer when empty.
  llvm::Constant* array(const std::string& name, const std::vector<llvm::Constant*>& elements);
  /// The same of structs without pointers, as the bytes that they are here: host and target are
  /// little-endian, and LLVM takes its time over a constant for each member.
  template <typename Struct>
  llvm::Constant* plain_array(const std::string& name, const std::vector<Struct>& elements) {
    static_assert(std::is_trivially_copyable_v<Struct> && std::has_unique_object_representations_v<Struct>);
    return bytes(name, elements.data(), elements.size() * sizeof(Struct));
  }
  llvm::Constant* doubles(const std::string& name, const std::vector<double>& values);

  /// Where the expression's program starts in the code array (tc::ExprOp).
  int32_t program(const ir::Dim& expression);
  llvm::Constant* code_array();                                 // after the last program
  /// Where the string starts among all of them; each ends with a zero. One array without addresses: a pointer
  /// for each would be a symbol, and a relocation whenever the library is loaded.
  int32_t string_start(const std::string& value);
  llvm::Constant* strings();  // after the last of them

 private:
  llvm::GlobalVariable* global(const std::string& name, llvm::Constant* value);
  llvm::Constant* bytes(const std::string& name, const void* data, size_t size);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  std::map<std::string, llvm::Constant*> texts_;
  std::unordered_map<ir::Dim, int32_t, ir::DimHash> programs_;
  std::vector<uint8_t> code_;
  std::unordered_map<std::string, int32_t> string_starts_;
  std::string strings_;
};

}  // namespace tfc::codegen
