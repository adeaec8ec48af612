#include "ir/check.h"

#include <cstdio>
#include <cstdlib>

namespace tfc::ir {

void compiler_fault(const std::string& what, std::source_location where) {
  std::fflush(stdout);
  std::fprintf(stderr,
               "transformerc: fault of the compiler, not of your input: %s\n"
               "  at %s:%u in %s\n"
               "please report it with the description (or .tcir file), the command line and these lines\n",
               what.c_str(), where.file_name(), static_cast<unsigned>(where.line()), where.function_name());
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace tfc::ir
