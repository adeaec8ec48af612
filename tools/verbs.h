// The sub-commands, each in the file of its name.
#pragma once

#include "tools/options.h"

namespace tfc::tools {

/// Each gives the exit status.
int train(const Options& options);
int bench(const Options& options);
int verify(const Options& options);
int norms(const Options& options);

}  // namespace tfc::tools
