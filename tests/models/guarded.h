// Memory that ends exactly where a page begins that nobody may touch.
#pragma once

#include <cstddef>
#include <deque>

#include "models/session.h"

namespace tfc::models {

/// `bytes` that a page without access follows at once.
class Guarded {
 public:
  explicit Guarded(size_t bytes, int fill = 0xff);  // 0xff: NaN in every float, -1 in every integer
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Bytes copy() const;

 private:
  void* mapping_ = nullptr;
  size_t mapped_ = 0, bytes_ = 0;
  uint8_t* data_ = nullptr;
};

/// A call's arrays, each in guarded memory of its exact size.
class GuardedCall {
 public:
  GuardedCall(const Session& session, const Call& call);
  tc_batch batch;
  const void* const* grad_output = nullptr;

 private:
  const void* keep(const void* data, int64_t bytes);
  std::deque<Guarded> arrays_;
  std::vector<const void*> targets_, weights_, grad_outputs_;
};

/// The core of a library over guarded memory: parameters as in `session`, zero gradients and moments,
/// workspace for one entry of exactly the published size.
class GuardedCore {
 public:
  GuardedCore(const Session& session, size_t workspace_bytes, int threads);
  tc_core core{};
  char error[256] = "";
  Guarded params, grads, moment1, moment2, workspace;
};

/// The core's functions, out of the library.
struct CoreFunctions {
  explicit CoreFunctions(const tools::LoadedLibrary& library);
#define TC_CORE(result, suffix, parameters) result(*suffix) parameters = nullptr;
#include "runtime/symbols.def"
};

}  // namespace tfc::models
