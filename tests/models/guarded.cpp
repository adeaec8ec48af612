#include "models/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace tfc::models {

Guarded::Guarded(size_t bytes, int fill) : bytes_(bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t usable = (bytes + page - 1) / page * page;
  mapped_ = usable + page;
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::runtime_error("no memory to guard");
  auto* begin = static_cast<uint8_t*>(mapping_);
  if (mprotect(begin + usable, page, PROT_NONE) != 0) throw std::runtime_error("cannot guard memory");
  data_ = begin + usable - bytes;
  std::memset(data_, fill, bytes);
}

Guarded::~Guarded() { munmap(mapping_, mapped_); }

Bytes Guarded::copy() const { return {data_, data_ + bytes_}; }

const void* GuardedCall::keep(const void* data, int64_t bytes) {
  if (!data) return nullptr;
  const Guarded& array = arrays_.emplace_back(static_cast<size_t>(bytes));
  std::memcpy(array.data(), data, static_cast<size_t>(bytes));
  return array.data();
}

GuardedCall::GuardedCall(const Session& session, const Call& call) : batch(call.get()) {
  const tc_info& info = session.info;
  const int64_t own = batch.B * batch.T, source = batch.B * batch.S, hidden = info.d_model * info.real_bytes;
  const bool float_src = info.inputs & TC_INPUT_SRC_IS_FLOAT, float_tgt = info.inputs & TC_INPUT_TGT_IS_FLOAT;
  const auto replace = [&](auto& pointer, int64_t bytes) {
    pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(keep(pointer, bytes));
  };
  replace(batch.tokens, own * 4);
  replace(batch.types, own * 4);
  replace(batch.x, own * hidden);
  replace(batch.tgt, own * (float_tgt ? hidden : 4));
  replace(batch.src, source * (float_src ? hidden : 4));
  replace(batch.memory, source * hidden);
  replace(batch.image, batch.B * info.image[0] * info.image[1] * info.image[2] * info.real_bytes);
  replace(batch.mask, own);
  replace(batch.src_mask, source);
  replace(batch.lengths, batch.B * 4);
  replace(batch.src_lengths, batch.B * 4);
  for (const ir::HeadFacts& head : session.heads()) {
    const size_t number = targets_.size();
    const auto kept = [&](const char* name, const void* const* arrays) -> const void* {
      const auto found = call.inputs.find(head.named(name));
      if (found == call.inputs.end() || !arrays) return nullptr;
      const int64_t bytes = found->second.dtype == ir::DType::I32 ? 4 : info.real_bytes;
      return keep(arrays[number], found->second.elements() * bytes);
    };
    targets_.push_back(kept("targets", batch.targets));
    weights_.push_back(kept("weights", batch.weights));
    grad_outputs_.push_back(kept("grad_output", call.batch.grad_output));
  }
  if (batch.targets) batch.targets = targets_.data();
  if (batch.weights) batch.weights = weights_.data();
  grad_output = grad_outputs_.data();
}

GuardedCore::GuardedCore(const Session& session, size_t workspace_bytes, int threads)
    : params(static_cast<size_t>(session.info.parameter_block * session.real_bytes())),
      grads(static_cast<size_t>(session.info.gradient_block * session.real_bytes()), 0),
      moment1(grads.bytes(), 0),
      moment2(grads.bytes(), 0),
      workspace(workspace_bytes) {
  std::memcpy(params.data(), session.api.block(session.model, TC_BLOCK_PARAMETERS), params.bytes());
  core.size = sizeof core;
  core.params = params.data();
  core.grads = grads.data();
  core.moment1 = moment1.data();
  core.moment2 = moment2.data();
  core.workspace = workspace.data();
  core.workspace_bytes = workspace_bytes;
  core.threads = threads;
  core.error = error;
  core.error_size = sizeof error;
}

CoreFunctions::CoreFunctions(const tools::LoadedLibrary& library) {
#define TC_CORE(result, name, parameters)                               \
  name = reinterpret_cast<result(*) parameters>(library.symbol(#name)); \
  if (!name) throw std::runtime_error("the library exports no core function " #name);
#include "runtime/symbols.def"
}

}  // namespace tfc::models
