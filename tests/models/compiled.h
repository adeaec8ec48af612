// A description compiled and loaded into the test, as any program would load its library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/target.h"
#include "ir/module.h"
#include "tools/loaded_library.h"

namespace tfc::models {

struct Settings {
  int optimisation = 1;  // all graph passes, and the quicker of LLVM's pipelines that vectorises
  ir::DType precision = ir::DType::F32;
  std::string cpu = "x86-64-v3";
  std::vector<std::string> disabled = {};  // passes
  ir::Point point{8, 16, 16, 16, 0};       // the design point
  std::string name = "model";
  bool quick_code = false;  // graph passes as said, code by LLVM's level 0, which takes a third of the time
};

struct Compiled {
  ir::Module joint, planned;
  std::unique_ptr<tools::LoadedLibrary> library;
  const tc_api& api() const { return library->api(); }
  bool has(const char* entry) const { return joint.entry(entry) != nullptr; }
};

/// Fails the test and throws on an error.
Compiled compile(const std::string& description, const Settings& settings = {});

/// The block graph of a description's text. Fails the test and throws on an error.
ir::Module blocks(const std::string& description, const Settings& settings = {});

/// Can this machine run what is compiled for that level?
bool runs_here(const std::string& cpu);

ir::Point point(int64_t B, int64_t T, int64_t S = 0);

/// S as the library and the interpreter want it: an encoder-decoder's own, else T.
ir::Point point_for(const ir::Module& module, int64_t B, int64_t T, int64_t S);

}  // namespace tfc::models
