// TFC_CHECK: a fault of the compiler. Prints what was expected and ends the process with status 70.
#pragma once

#include <source_location>
#include <string>

namespace tfc::ir {

[[noreturn]] void compiler_fault(const std::string& what,
                                 std::source_location where = std::source_location::current());

}  // namespace tfc::ir

/// Evaluates `message` (a std::string expression) only on failure.
#define TFC_CHECK(condition, message)                     \
  do {                                                    \
    if (!(condition)) ::tfc::ir::compiler_fault(message); \
  } while (false)
