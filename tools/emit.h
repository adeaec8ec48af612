// One output for each --emit request.
#pragma once

#include "codegen/codegen.h"
#include "ir/module.h"
#include "passes/pass.h"
#include "tools/options.h"
#include "tools/outputs.h"

namespace tfc::tools {

/// What a run of the compiler has made.
struct Compilation {
  const ir::Module& start;    // as it was read, before any pass
  const ir::Module& planned;  // as the passes left it; planned unless less was needed
  const passes::PassOptions& options;
  const codegen::Compiled& code;
  const std::vector<passes::PassRecord>& records;
};

Output output_of(const EmitRequest& request, const Compilation& compilation);

}  // namespace tfc::tools
