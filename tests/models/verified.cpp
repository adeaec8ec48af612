#include "models/verified.h"

#include <gtest/gtest.h>

#include "tools/verification.h"

namespace tfc::models {

void verify(const Case& model, const Settings& settings) {
  if (!runs_here(settings.cpu)) GTEST_SKIP() << "this machine has no " << settings.cpu;
  const Compiled compiled = compile(model.text, settings);
  try {
    tools::Verification verification(compiled.joint, *compiled.library,
                                     point_for(compiled.joint, model.B, model.T, model.S));
    verification.run();
    EXPECT_FALSE(verification.checks.empty());
    for (const tools::Check& check : verification.checks) {
      EXPECT_TRUE(check.ok()) << check.group << ": " << check.name << ": error " << check.error
                              << ", tolerance " << check.tolerance;
    }
  } catch (const tools::LibraryError& error) {
    FAIL() << error.message;
  }
}

}  // namespace tfc::models
