// What stands behind tc_model and tc_session, and the functions that the exported ones share.
#pragma once

#include <atomic>

#include "runtime/batch.h"
#include "runtime/edits.h"
#include "runtime/frame.h"
#include "runtime/heads.h"
#include "runtime/memory.h"
#include "runtime/pool.h"

namespace tc {
/// What the last run has left in the workspace for `tap`.
struct Tapped {
  int32_t entry = -1;   // -1: nothing
  Sizes sizes;
  int64_t planned = 0;  // offset of the plan's buffers
};

enum Writing : int { kTraining = 1, kInFile = 2 };
}

struct tc_model {
  const tc::ModelDesc* desc;
  tc_options options;  // defaults of its sessions
  tc::Allocator allocator;
  tc::Block self;                            // this struct's own memory
  tc::Block parameters, gradients, moments;  // moments: both, the second from half on
  tc_state state;
  std::atomic<int> writing{0};  // kTraining: a session changes gradients or parameters; kInFile: load or save
  std::atomic<int> running{0};  // sessions that are inside a call
  std::atomic<int> loading{0};  // a file is read: no session may run
  std::atomic<int> telling{0};  // a thread is changing the message
  tc::Message message;
};

struct tc_session {
  tc_model* model;
  tc_options options;
  tc::Allocator allocator;
  tc::Block self;  // this struct, the entries' resolved tables and the edits
  tc::Block workspace;
  tc::Resolved* resolved[tc::EntryEnd];  // by entry, null where there is none
  tc::Profile profiles[tc::EntryEnd];    // by entry, where times are wanted
  tc::Pool pool;
  tc::Executor executor;
  std::atomic<int> busy{0};
  tc::Message message;
  tc::Losses losses;  // of the last call that had some
  tc::Tapped tapped;
  tc::Edit* edits;  // one for each of the model's

  // The cache: the entries' tensors, then for each row its length, its next token's position and its last one's
  // document, then the source's mask and documents (runtime/cache.cpp).
  tc::Block cache;
  int64_t cache_B, cache_capacity, cache_S;  // B 0: the first decode decides
  int32_t* cache_lengths;
  int32_t* cache_positions;       // [B]; null, as what follows, where the model has no use for them
  int32_t* cache_documents;       // [B]
  uint8_t* cache_src_mask;        // [B,S]
  int32_t* cache_src_documents;   // [B,S]
};

namespace tc {

/// Enters a session for one call: `entered` is false when another thread is inside. The message is cleared.
class SessionCall {
 public:
  explicit SessionCall(tc_session* session) : session_(session) {
    entered_ = session && session->busy.exchange(1) == 0;
    if (!entered_) return;
    session->message.clear();
    session->model->running.fetch_add(1);
    if (session->model->loading.load() == 0) return;
    session->message.fail(TC_E_STATE, "the model is being loaded from a file");
    leave();
  }
  ~SessionCall() {
    if (entered_) leave();
  }
  SessionCall(const SessionCall&) = delete;
  SessionCall& operator=(const SessionCall&) = delete;
  /// TC_OK, or why the call cannot go on (the message is then another thread's business).
  tc_status status() const { return entered_ ? TC_OK : session_ ? TC_E_STATE : TC_E_ARGUMENT; }

 private:
  void leave() {
    session_->model->running.fetch_sub(1);
    session_->busy.store(0);
    entered_ = false;
  }

  tc_session* session_;
  bool entered_;
};

/// Likewise for the model's one writer.
class WritingCall {
 public:
  explicit WritingCall(tc_session& session)
      : model_(session.model) {
    int before = 0;
    entered_ = model_->writing.compare_exchange_strong(before, kTraining);
    status_ = entered_ ? TC_OK
                       : session.message.fail(TC_E_STATE, before == kInFile
                                                              ? "the model is being saved to a file"
                                                              : "another session is training this model: one at a time");
  }
  ~WritingCall() {
    if (entered_) model_->writing.store(0);
  }
  WritingCall(const WritingCall&) = delete;
  WritingCall& operator=(const WritingCall&) = delete;
  tc_status status() const { return status_; }

 private:
  tc_model* model_;
  bool entered_;
  tc_status status_;
};

/// Holds the model for a file: no session writes it meanwhile, nor (`alone`) runs at all.
class FileCall {
 public:
  FileCall(tc_model& model, bool alone, Message& message);
  ~FileCall();
  FileCall(const FileCall&) = delete;
  FileCall& operator=(const FileCall&) = delete;
  tc_status status() const { return status_; }

 private:
  tc_model& model_;
  bool entered_ = false, alone_;
  tc_status status_;
};

/// Threads for what a model does outside of its sessions, while this lives. Without memory for them `status` says so,
/// and the calling thread is all there is.
class ModelThreads {
 public:
  ModelThreads(tc_model& model, Message& message);
  ~ModelThreads();
  ModelThreads(const ModelThreads&) = delete;
  ModelThreads& operator=(const ModelThreads&) = delete;
  const Executor& executor() const { return executor_; }
  tc_status status() const { return status_; }

 private:
  tc_status status_;
  Allocator allocator_;
  Block memory_;
  Executor executor_;
};

/// The model's hooks without its limit: for what is gone when the call ends.
Allocator unlimited(const tc_model& model);
/// The sentence becomes the model's; any thread may say one.
void tell(tc_model& model, const Message& message);
/// Null: not allocated.
char* second_moments(const tc_model& model);

/// Creation over given tables: the exported functions use those of the library's own model.
tc_status create_model(const ModelDesc& desc, const tc_options* options, tc_model** model);
tc_status create_session(tc_model* model, const tc_options* options, tc_session** session);

/// Reads and checks options; none given: the inherited ones, or defaults.
tc_status read_options(const tc_options* given, const tc_options* inherited, tc_options& options,
                       Message& message);
Executor executor_of(const ModelDesc& desc, const tc_options& options, Pool* pool);

// -- memory
// ----------------------------------------------------------------------------------------------------------
int64_t model_bytes();
int64_t session_bytes(const ModelDesc& desc);
/// Bytes of a cache with what is kept beside the entries' tensors, and where that is; -1: nowhere.
struct CacheLayout {
  int64_t lengths, positions, documents, src_mask, src_documents, bytes;
};
CacheLayout cache_layout(const ModelDesc& desc, const Sizes& sizes);
/// B, T, S of a call as an entry's programs see them: capacity only in decoding, S only with a source.
Sizes sizes_for(const ModelDesc& desc, EntryId entry, int64_t B, int64_t T, int64_t S, int64_t capacity);

tc_status need_gradients(tc_model& model, const Executor& executor, Message& message);
tc_status need_moments(tc_model& model, const Executor& executor, Message& message);
tc_status need_workspace(tc_session& session, const Frame& frame);

// -- running
// -----------------------------------------------------------------------------------------------------------
/// One entry in a session, in steps: `prepare` checks nothing but memory; outputs are set in
/// `bindings.roles`.
struct SessionRun {
  Frame frame;
  Bindings bindings;
};
/// Workspace and pointers for a call whose inputs were checked.
tc_status prepare(tc_session& session, EntryId entry, const Inputs& inputs, SessionRun& run);
/// `cancellable`: ask the hook between kernels.
tc_status execute(tc_session& session, SessionRun& run, bool cancellable);

inline double& number(const tc_session& session, const SessionRun& run, Role role) {
  return held_number(run.frame, session.workspace.data, role);
}
/// Arrays of the caller, by role; null: not given.
inline void set_roles(Bindings& bindings, const void* const* given) {
  for (int role = 0; role < RoleEnd; ++role) {
    if (given[role]) bindings.roles[role] = given[role];
  }
}
/// A forward entry with an array for each head as its result.
tc_status run_to_heads(tc_session& session, EntryId entry, const tc_batch* batch, Role role, const char* name,
                       void* const* outputs);
/// A forward entry with one array as its result: checks, prepares and executes.
tc_status run_to_array(tc_session& session, EntryId entry, const tc_batch* batch, Role role, const char* name,
                       void* output);

/// Where the caller wants gradients of its float inputs, by role (runtime/training.cpp).
tc_status bind_grad_inputs(const ModelDesc& desc, void* const* grad_inputs, const void** roles,
                           Message& message);

// -- cache (runtime/cache.cpp), shared with generate
// -------------------------------------------------------------------
/// As tc_api.cache_reset, inside a call; all checks done but that of the capacity. `source`: checked inputs
/// of the encode entry, or null.
tc_status reset_cache(tc_session& session, int64_t B, int64_t capacity, const Inputs* source);
/// As tc_api.decode.
tc_status decode_next(tc_session& session, const tc_batch* next, void* logits);

}  // namespace tc
