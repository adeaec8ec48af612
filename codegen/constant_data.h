// Constants of the generated module, built like C initialisers.
#pragma once

#include <map>
#include <string>
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
  llvm::Constant* doubles(const std::string& name, const std::vector<double>& values);

  /// Where the expression's program starts in the code array, as an i64 constant.
  llvm::Constant* program(const ir::Dim& expression);
  llvm::Constant* code_array();                                 // after the last program
  /// Index of a string in the strings array.
  llvm::Constant* string_index(const std::string& value);
  llvm::Constant* strings_array();

 private:
  llvm::GlobalVariable* global(const std::string& name, llvm::Constant* value);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  std::map<std::string, llvm::Constant*> texts_;
  std::map<std::string, int64_t> programs_;  // by the expression's text
  std::vector<int64_t> code_;
  std::map<std::string, int64_t> string_numbers_;
  std::vector<llvm::Constant*> strings_;
};

}  // namespace tfc::codegen
