#include "tools/loaded_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "codegen/codegen.h"
#include "ir/check.h"
#include "tools/common.h"
#include "tools/outputs.h"

namespace tfc::tools {
namespace {

namespace fs = std::filesystem;

// A folder of our own that is gone when the library is loaded.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "transformerc-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::unique_ptr<LoadedLibrary> LoadedLibrary::build(const ir::Module& planned, const codegen::Target& target,
                                                    int optimisation, ir::Diagnostics& diagnostics) {
  codegen::CompileRequest request;
  request.optimisation = optimisation;
  request.shared = true;
  request.architecture = architecture_of(planned);
  const auto compiled = codegen::compile(planned, target, request, diagnostics);
  if (!compiled) return nullptr;

  const TemporaryFolder folder;
  const std::string file = "lib" + planned.name + ".so";
  std::string error = folder.path().empty() ? "cannot make a temporary folder" : "";
  if (!error.empty() ||
      !write_outputs({{file, compiled->shared}}, {Destination::Kind::Folder, folder.path()}, {}, {}, error)) {
    diagnostics.error({}, error).name = "file";
    return nullptr;
  }
  std::unique_ptr<LoadedLibrary> library(new LoadedLibrary);
  library->handle_ = dlopen((folder.path() + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle_) ir::compiler_fault(std::string("the compiled library does not load: ") + dlerror());
  library->name_ = planned.name;
  using GetApi = const tc_api* (*)(uint64_t);
  const auto get_api = reinterpret_cast<GetApi>(library->symbol("api"));
  TFC_CHECK(get_api, "the compiled library exports no " + planned.name + "_api");
  library->api_ = get_api(0);
  TFC_CHECK(library->api_, "the compiled library has another interface than this compiler");
  return library;
}

void* LoadedLibrary::symbol(const std::string& suffix) const {
  return dlsym(handle_, (name_ + "_" + suffix).c_str());
}

LoadedLibrary::~LoadedLibrary() {
  if (handle_) dlclose(handle_);
}

std::unique_ptr<LoadedLibrary> compile_and_load(ir::Module module, const passes::PassOptions& options,
                                                const codegen::Target& target, ir::Diagnostics& diagnostics) {
  if (!passes::run_pipeline(module, ir::Phase::Planned, options, diagnostics) || !diagnostics.ok())
    return nullptr;
  return LoadedLibrary::build(module, target, options.optimisation, diagnostics);
}

LoadedModel::LoadedModel(const LoadedLibrary& library, uint64_t seed, int threads) : api_(library.api()) {
  char error[512] = "";
  tc_options options{};
  options.size = sizeof options;
  options.seed = seed;
  options.threads = threads;
  options.error = error;
  options.error_size = sizeof error;
  if (api_.model_create(&options, &model_) != TC_OK) throw LibraryError{error};
  if (api_.session_create(model_, &options, &session_) != TC_OK) {
    const std::string why = api_.model_message(model_);
    api_.model_destroy(model_);
    throw LibraryError{why};
  }
  info_.size = sizeof info_;
  api_.info(&info_);
  for (int32_t index = 0; index < info_.parameter_count; ++index) {
    tc_parameter parameter{};
    parameter.size = sizeof parameter;
    check(api_.parameter_info(index, &parameter));
    parameters_.push_back(parameter);
  }
}

LoadedModel::~LoadedModel() {
  api_.session_destroy(session_);
  api_.model_destroy(model_);
}

void LoadedModel::check(tc_status status) const {
  if (status == TC_OK) return;
  const std::string message = api_.message(session_);
  throw LibraryError{message.empty() ? api_.status_text(status) : message};
}

std::vector<double> LoadedModel::read(const void* data, int64_t elements) const {
  std::vector<double> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) {
    values[static_cast<size_t>(i)] =
        info_.real_bytes == 8 ? static_cast<const double*>(data)[i] : static_cast<const float*>(data)[i];
  }
  return values;
}

void LoadedModel::write(void* data, const std::vector<double>& values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (info_.real_bytes == 8) {
      static_cast<double*>(data)[i] = values[i];
    } else {
      static_cast<float*>(data)[i] = static_cast<float>(values[i]);
    }
  }
}

}  // namespace tfc::tools
