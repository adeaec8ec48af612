// The core: the entries over memory that the caller owns, without a model or session. Stateless and
// re-entrant.
#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/structs.h"

namespace tc {

namespace {

using Long = long long;

/// One call: the core as this library knows it, and where its sentence goes.
class CoreCall {
 public:
  explicit CoreCall(const tc_core* given) : given_(given) {
    message_.clear();
    status_ = read_struct("core", given, core_, message_);
  }
  ~CoreCall() {
    if (status_ != TC_OK && given_ && given_->size >= sizeof(tc_core))
      message_.copy_to(core_.error, core_.error_size);
  }

  /// Checks the batch and the memory that the entry needs, and binds both.
  bool begin(EntryId entry, const tc_batch* batch);
  bool need(const char* name, const void* pointer, int64_t alignment) {
    if (status_ == TC_OK) status_ = check_pointer(name, pointer, alignment, message_);
    return status_ == TC_OK;
  }
  /// Goes on with what another check said.
  bool take(tc_status status) {
    status_ = status;
    return status == TC_OK;
  }
  tc_status run();

  const ModelDesc& desc() const { return tc_model_desc; }
  Message& message() { return message_; }
  const tc_core& core() const { return core_; }
  Inputs& inputs() { return inputs_; }
  const Frame& frame() const { return frame_; }
  Bindings& bindings() { return bindings_; }
  double& number(Role role) { return held_number(frame_, memory_, role); }
  char* memory() { return memory_; }
  bool ok() const { return status_ == TC_OK; }
  tc_status status() const { return status_; }

 private:
  bool check_memory(EntryId entry);
  bool check_cache(EntryId entry);
  bool bind(EntryId entry);

  const tc_core* given_;
  tc_core core_;
  Message message_;
  tc_status status_;
  Inputs inputs_;
  Frame frame_;
  Bindings bindings_;
  char* memory_ = nullptr;
  Resolved* resolved_ = nullptr;
};

bool CoreCall::check_memory(EntryId entry) {
  const int64_t real = real_bytes(desc());
  const bool trains = entry == EntryTrain || entry == EntryVjp || entry == EntryStep;
  need("core.params", core_.params, real);
  if (trains) need("core.grads", core_.grads, real);
  if (entry == EntryStep) {
    need("core.moment1", core_.moment1, real);
    need("core.moment2", core_.moment2, real);
  }
  need("core.workspace", core_.workspace, kAlignment);
  if (ok() && (core_.threads < 1 || core_.threads > kMaxThreads)) {
    take(message_.fail(TC_E_ARGUMENT, "core.threads is %d, expected 1 to %d", core_.threads, kMaxThreads));
  }
  return ok() && check_cache(entry);
}

bool CoreCall::check_cache(EntryId entry) {
  if (entry != EntryDecode && entry != EntryEncode) return true;
  need("core.cache", core_.cache, kAlignment);
  const int64_t most = desc().max_seq > 0 ? desc().max_seq : INT32_MAX;
  if (ok() && (core_.capacity < 1 || core_.capacity > most)) {
    take(message_.fail(TC_E_ARGUMENT, "core.capacity is %lld, expected 1 to %lld", Long{core_.capacity}, Long{most}));
  }
  if (entry == EntryEncode || !need("core.cache_lengths", core_.cache_lengths, sizeof(int32_t))) return ok();
  for (int64_t b = 0; b < inputs_.sizes.B; ++b) {
    const int64_t has = core_.cache_lengths[b], brings = row_length(inputs_, b);
    if (has < 0 || has + brings > core_.capacity) {
      return take(message_.fail(TC_E_ARGUMENT,
                                "row %lld of the cache has %lld of %lld tokens, and %lld more do not fit",
                                Long{b}, Long{has}, Long{core_.capacity}, Long{brings}));
    }
  }
  inputs_.roles[RoleOffsets] = core_.cache_lengths;
  return true;
}

bool CoreCall::bind(EntryId entry) {
  const int64_t tables = resolved_bytes(desc().entries[entry]);
  frame_ = frame_of(desc(), entry, inputs_.sizes, core_.threads);
  const int64_t needed = plus(tables, frame_.bytes);
  if (core_.workspace_bytes < static_cast<size_t>(needed)) {
    return take(message_.fail(TC_E_MEMORY, "core.workspace_bytes is %zu, expected at least %lld",
                              core_.workspace_bytes, Long{needed}));
  }
  char* workspace = static_cast<char*>(core_.workspace);
  resolved_ = place_resolved(desc().entries[entry], workspace);
  memory_ = workspace + tables;
  bind_frame(desc(), frame_, memory_, inputs_, bindings_);
  char* const spaces[SpaceConstant] = {bindings_.spaces[SpaceWorkspace],  static_cast<char*>(core_.params),
                                       static_cast<char*>(core_.grads),   static_cast<char*>(core_.moment1),
                                       static_cast<char*>(core_.moment2), static_cast<char*>(core_.cache),
                                       bindings_.spaces[SpaceEdits]};
  for (int space = 0; space < SpaceConstant; ++space) bindings_.spaces[space] = spaces[space];
  return true;
}

bool CoreCall::begin(EntryId entry, const tc_batch* batch) {
  if (ok()) status_ = require_entry(desc(), entry, message_);
  if (entry == EntryDecode) inputs_.cached = core_.cache_lengths;
  if (ok() && entry != EntryStep) status_ = check_batch(desc(), entry, batch, inputs_, message_);
  if (entry == EntryDecode || entry == EntryEncode) inputs_.sizes.C = core_.capacity;
  return ok() && check_memory(entry) && bind(entry);
}

tc_status CoreCall::run() {
  Executor executor;
  executor.parallel_for = core_.parallel_for;
  executor.user = core_.user;
  executor.threads = core_.threads;
  executor.denormals = desc().real == TypeF32 ? Denormals::Flush : Denormals::Keep;
  run_entry({&desc(), &desc().entries[frame_.entry], &bindings_, resolved_, memory_ + frame_.scratch,
             frame_.scratch_stride, &executor});
  return TC_OK;
}

tc_status run_to_output(const tc_core* core, EntryId entry, const tc_batch* batch, Role role, void* output) {
  CoreCall call(core);
  if (!call.need("output", output, real_bytes(call.desc())) || !call.begin(entry, batch))
    return call.status();
  call.bindings().roles[role] = output;
  return call.run();
}

tc_status fill_heads(const tc_core* core, EntryId entry, const tc_batch* batch, Role role, void* const* outputs) {
  CoreCall call(core);
  const void* wanted[RoleEnd] = {};
  if (!call.ok() || !call.take(require_entry(call.desc(), entry, call.message())) ||
      !call.take(bind_heads(call.desc(), entry, role, "outputs", outputs, wanted, call.message())) ||
      !call.begin(entry, batch)) {
    return call.status();
  }
  set_roles(call.bindings(), wanted);
  return call.run();
}

/// One number for each head.
tc_status run_to_loss(CoreCall& call, double* sums, double* counts) {
  const tc_status status = call.run();
  const Losses losses = losses_of(call.desc(), call.frame(), call.memory());
  for (int32_t head = 0; head < call.desc().head_count; ++head) {
    if (sums) sums[head] = losses.sums[head];
    if (counts) counts[head] = losses.counts[head];
  }
  return status;
}

/// For functions that have room for one output.
bool has_one_head(CoreCall& call, const char* other) {
  if (!call.ok() || call.desc().head_count == 1) return call.ok();
  return call.take(call.message().fail(TC_E_STATE, "the model %s has several heads: see %s", call.desc().name, other));
}

tc_status run_vjp(CoreCall& call, const tc_batch* batch, int training, const void* const* grad_outputs,
                  const char* name, void* const* grad_inputs) {
  const ModelDesc& desc = call.desc();
  const void* wanted[RoleEnd] = {};
  if (!call.ok() || !call.take(require_entry(desc, EntryVjp, call.message())) ||
      !call.take(bind_heads(desc, EntryVjp, RoleGradOutput, name, grad_outputs, wanted, call.message())) ||
      !call.take(bind_grad_inputs(desc, grad_inputs, wanted, call.message())) || !call.begin(EntryVjp, batch)) {
    return call.status();
  }
  hold_dropout(call.frame(), call.memory(), call.core().seed, call.core().call, training != 0);
  set_roles(call.bindings(), wanted);
  return call.run();
}

size_t published(int64_t bytes) { return bytes == kMost ? SIZE_MAX : static_cast<size_t>(bytes); }

/// Capacity where a signature has no room for it.
int64_t usual_capacity(int64_t T) { return tc_model_desc.max_seq > 0 ? tc_model_desc.max_seq : T; }

/// Does any call take these sizes?
bool are_sizes(EntryId entry, const Sizes& sizes) {
  const ModelDesc& desc = tc_model_desc;
  Message unread;
  const bool cached = entry == EntryDecode || entry == EntryEncode;
  if (cached && desc.max_seq > 0 && sizes.C > desc.max_seq) return false;
  return check_sizes(desc, entry, sizes, unread) == TC_OK;
}

int64_t workspace_bytes(EntryId entry, const Sizes& sizes, int threads) {
  const ModelDesc& desc = tc_model_desc;
  if (!are_sizes(entry, sizes)) return kMost;
  return plus(resolved_bytes(desc.entries[entry]), frame_of(desc, entry, sizes, threads).bytes);
}

bool is_entry(int entry) { return entry >= 0 && entry < EntryEnd && tc_model_desc.entries[entry].present; }

int64_t memory_bytes(int what, int64_t B, int64_t T, int64_t S, int threads) {
  const ModelDesc& desc = tc_model_desc;
  switch (what) {
    case TC_MEMORY_PARAMETERS:
      return align_up(block_bytes(desc));
    case TC_MEMORY_GRADIENTS:
      return align_up(gradient_bytes(desc));
    case TC_MEMORY_MOMENTS:
      return times(2, align_up(gradient_bytes(desc)));
    case TC_MEMORY_CACHE: {
      const Sizes sizes = sizes_for(desc, EntryDecode, B, 1, S, T);
      return are_sizes(EntryDecode, sizes) ? cache_layout(desc, sizes).bytes : kMost;
    }
    case TC_MEMORY_MODEL:
      return model_bytes();
    case TC_MEMORY_SESSION:
      return session_bytes(desc);
    default:
      break;
  }
  const int entry = what - TC_MEMORY_WORKSPACE;
  if (!is_entry(entry)) return 0;
  const EntryId id = static_cast<EntryId>(entry);
  const Sizes sizes = sizes_for(desc, id, B, T, S, usual_capacity(T));
  if (!are_sizes(id, sizes)) return kMost;
  return frame_of(desc, id, sizes, threads > 0 ? threads : available_cores()).bytes;
}

}  // namespace

}  // namespace tc

extern "C" {

size_t tc_rt_workspace_bytes(int entry, int64_t B, int64_t T, int64_t S, int threads) {
  if (!tc::is_entry(entry)) return 0;
  const tc::EntryId id = static_cast<tc::EntryId>(entry);
  return tc::published(
      tc::workspace_bytes(id, tc::sizes_for(tc_model_desc, id, B, T, S, tc::usual_capacity(T)), threads));
}

size_t tc_rt_decode_workspace_bytes(int64_t B, int64_t T, int64_t S, int64_t capacity, int threads) {
  if (!tc::is_entry(tc::EntryDecode)) return 0;
  return tc::published(tc::workspace_bytes(
      tc::EntryDecode, tc::sizes_for(tc_model_desc, tc::EntryDecode, B, T, S, capacity), threads));
}

size_t tc_rt_memory(int what, int64_t B, int64_t T, int64_t S, int threads) {
  return tc::published(tc::memory_bytes(what, B, T, S, threads));
}

tc_status tc_rt_core_forward(const tc_core* core, const tc_batch* batch, int last, void* output) {
  if (last) return tc::run_to_output(core, tc::EntryLast, batch, tc::RoleOutput, output);
  if (tc::CoreCall call(core); !tc::has_one_head(call, "core_forward_heads")) return call.status();
  return tc::run_to_output(core, tc::EntryInfer, batch, tc::RoleOutput, output);
}

tc_status tc_rt_core_forward_heads(const tc_core* core, const tc_batch* batch, void* const* outputs) {
  return tc::fill_heads(core, tc::EntryInfer, batch, tc::RoleOutput, outputs);
}

tc_status tc_rt_core_loss(const tc_core* core, const tc_batch* batch, double* sum, double* count) {
  tc::CoreCall call(core);
  return call.begin(tc::EntryLoss, batch) ? tc::run_to_loss(call, sum, count) : call.status();
}

tc_status tc_rt_core_logprobs(const tc_core* core, const tc_batch* batch, void* out) {
  if (tc::CoreCall call(core); !tc::has_one_head(call, "core_logprobs_heads")) return call.status();
  return tc::run_to_output(core, tc::EntryLogprobs, batch, tc::RoleLogprobs, out);
}

tc_status tc_rt_core_logprobs_heads(const tc_core* core, const tc_batch* batch, void* const* outs) {
  return tc::fill_heads(core, tc::EntryLogprobs, batch, tc::RoleLogprobs, outs);
}

tc_status tc_rt_core_train(const tc_core* core, const tc_batch* batch, int mean, double* sum, double* count) {
  tc::CoreCall call(core);
  if (!call.begin(tc::EntryTrain, batch)) return call.status();
  tc::hold_dropout(call.frame(), call.memory(), call.core().seed, call.core().call, true);
  if (call.frame().held[tc::RoleMean] >= 0) call.number(tc::RoleMean) = mean ? 1 : 0;
  return tc::run_to_loss(call, sum, count);
}

tc_status tc_rt_core_vjp(const tc_core* core, const tc_batch* batch, int training,
                         const void* grad_output, void* const* grad_inputs) {
  tc::CoreCall call(core);
  if (!tc::has_one_head(call, "core_vjp_heads") || !call.need("grad_output", grad_output, tc::real_bytes(call.desc()))) {
    return call.status();
  }
  return tc::run_vjp(call, batch, training, &grad_output, "grad_output", grad_inputs);
}

tc_status tc_rt_core_vjp_heads(const tc_core* core, const tc_batch* batch, int training,
                               const void* const* grad_outputs, void* const* grad_inputs) {
  tc::CoreCall call(core);
  return tc::run_vjp(call, batch, training, grad_outputs, "grad_outputs", grad_inputs);
}

tc_status tc_rt_core_step(const tc_core* core, const tc_adamw* settings, uint64_t step, double* norm) {
  tc::CoreCall call(core);
  tc::Update update{{}, step, 0};
  if (!call.ok() || !call.take(tc::check_update(call.desc(), settings, update.settings, call.message()))) {
    return call.status();
  }
  if (norm) *norm = 0;
  update.count = update.settings.count;
  if (update.count == 0) return TC_OK;
  if (!call.begin(tc::EntryStep, nullptr)) return call.status();
  tc::hold_update(call.desc(), call.frame(), call.memory(), update);
  const tc_status status = call.run();
  if (norm) *norm = call.number(tc::RoleNorm);
  return status;
}

tc_status tc_rt_core_encode(const tc_core* core, const tc_batch* memory) {
  tc::CoreCall call(core);
  return call.begin(tc::EntryEncode, memory) ? call.run() : call.status();
}

tc_status tc_rt_core_decode(const tc_core* core, const tc_batch* next, void* logits) {
  return tc::run_to_output(core, tc::EntryDecode, next, tc::RoleOutput, logits);
}

}  // extern "C"
