// A model compiled and loaded into this process, as any program would load it: the verbs run on the same
// library that users get.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/target.h"
#include "ir/module.h"
#include "passes/pass.h"
#include "runtime/api.h"

namespace tfc::tools {

/// Owns the loaded library; the file itself is gone as soon as it is loaded.
class LoadedLibrary {
 public:
  /// `planned`: phase planned. Empty with errors in `diagnostics`.
  static std::unique_ptr<LoadedLibrary> build(const ir::Module& planned, const codegen::Target& target,
                                              int optimisation, ir::Diagnostics& diagnostics);
  ~LoadedLibrary();
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  const tc_api& api() const { return *api_; }
  /// The exported NAME_<suffix>; null where there is none.
  void* symbol(const std::string& suffix) const;

 private:
  LoadedLibrary() = default;
  std::string name_;
  void* handle_ = nullptr;
  const tc_api* api_ = nullptr;
};

/// From `module`'s phase through all passes, then as above.
std::unique_ptr<LoadedLibrary> compile_and_load(ir::Module module, const passes::PassOptions& options,
                                                const codegen::Target& target, ir::Diagnostics& diagnostics);

/// A model of a loaded library with one session, freed together. Calls that fail end the verb with the
/// library's own message: `fail` throws LibraryError.
class LoadedModel {
 public:
  LoadedModel(const LoadedLibrary& library, uint64_t seed, int threads);
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const tc_api& api() const { return api_; }
  tc_model* model() const { return model_; }
  tc_session* session() const { return session_; }
  const tc_info& info() const { return info_; }
  const std::vector<tc_parameter>& parameters() const { return parameters_; }
  void check(tc_status status) const;  // throws LibraryError unless TC_OK

  /// Elements of a parameter-shaped array as doubles, whatever the precision.
  std::vector<double> read(const void* data, int64_t elements) const;
  void write(void* data, const std::vector<double>& values) const;

 private:
  const tc_api& api_;
  tc_model* model_ = nullptr;
  tc_session* session_ = nullptr;
  tc_info info_{};
  std::vector<tc_parameter> parameters_;
};

struct LibraryError {
  std::string message;
};

}  // namespace tfc::tools
