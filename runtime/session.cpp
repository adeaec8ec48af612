// Sessions: creation, workspace, and the forward entry points.
#include <string.h>

#include <new>

#include "runtime/exports.h"
#include "runtime/objects.h"

namespace tc {

int64_t session_bytes(const ModelDesc& desc) {
  int64_t bytes = align_up(static_cast<int64_t>(sizeof(tc_session)));
  for (const EntryDesc& entry : desc.entries) {
    if (entry.present) bytes += resolved_bytes(entry);
  }
  return bytes + align_up(desc.edit_count * static_cast<int64_t>(sizeof(Edit)));
}

namespace {

tc_status create(tc_model* model, const tc_options* given, tc_session** out, Message& message) {
  if (!out) return message.fail(TC_E_ARGUMENT, "session is NULL");
  tc_options options;
  tc_status status = read_options(given, &model->options, options, message);
  if (status != TC_OK) return status;
  Allocator allocator;
  allocator.configure(options);
  const ModelDesc& desc = *model->desc;
  Block self;
  status = allocator.allocate(self, session_bytes(desc), "the session", message);
  if (status != TC_OK) return status;
  tc_session* session = new (self.data) tc_session{};
  session->model = model;
  session->options = options;
  session->allocator = allocator;
  session->self = self;
  char* tables = self.data + align_up(static_cast<int64_t>(sizeof(tc_session)));
  for (int e = 0; e < EntryEnd; ++e) {
    if (!desc.entries[e].present) continue;
    session->resolved[e] = place_resolved(desc.entries[e], tables);
    tables += resolved_bytes(desc.entries[e]);
  }
  session->edits = reinterpret_cast<Edit*>(tables);
  for (int32_t i = 0; i < desc.edit_count; ++i) new (&session->edits[i]) Edit{};
  session->pool.configure(options.threads);
  session->executor = executor_of(desc, options, &session->pool);
  *out = session;
  return TC_OK;
}

}  // namespace

/// Threads may create their sessions at the same time: each has a message of its own, and what went wrong is copied
/// into the model's by one after the other.
tc_status create_session(tc_model* model, const tc_options* given, tc_session** out) {
  if (out) *out = nullptr;
  if (!model) return TC_E_ARGUMENT;
  Message message{};
  const tc_status status = create(model, given, out, message);
  if (status == TC_OK) return status;
  tell(*model, message);
  return status;
}

Sizes sizes_for(const ModelDesc& desc, EntryId entry, int64_t B, int64_t T, int64_t S, int64_t capacity) {
  Sizes sizes;
  if (entry == EntryStep) return sizes;
  sizes.B = B;
  sizes.T = entry == EntryEncode ? 1 : T;
  sizes.S = is_encoder_decoder(desc) ? S : sizes.T;
  sizes.C = entry == EntryDecode || entry == EntryEncode ? capacity : 0;
  return sizes;
}

tc_status need_workspace(tc_session& session, const Frame& frame) {
  if (session.workspace.data && session.workspace.bytes >= frame.bytes) return TC_OK;
  // The old one goes first: its content means nothing, and the two together would be more than was published.
  session.allocator.release(session.workspace);
  session.tapped.entry = -1;
  for (Resolved* resolved : session.resolved) {
    if (resolved) resolved->valid = 0;
  }
  return session.allocator.allocate(session.workspace, frame.bytes, "the workspace", session.message);
}

tc_status prepare(tc_session& session, EntryId entry, const Inputs& inputs, SessionRun& run) {
  const tc_model& model = *session.model;
  session.tapped.entry = -1;
  tc_status status = check_edits(*model.desc, session.edits, entry, inputs.sizes, session.message);
  if (status != TC_OK) return status;
  run.frame = frame_of(*model.desc, entry, inputs.sizes, session.options.threads);
  status = need_workspace(session, run.frame);
  if (status != TC_OK) return status;
  run.bindings = Bindings{};
  bind_frame(*model.desc, run.frame, session.workspace.data, inputs, run.bindings);
  hold_edits(*model.desc, session.edits, run.frame, session.workspace.data);
  run.bindings.spaces[SpaceParams] = model.parameters.data;
  run.bindings.spaces[SpaceGrads] = model.gradients.data;
  run.bindings.spaces[SpaceMoment1] = model.moments.data;
  run.bindings.spaces[SpaceMoment2] = second_moments(model);
  run.bindings.spaces[SpaceCache] = session.cache.data;
  return TC_OK;
}

tc_status execute(tc_session& session, SessionRun& run, bool cancellable) {
  const ModelDesc& desc = *session.model->desc;
  Walk walk{&desc,
            &desc.entries[run.frame.entry],
            &run.bindings,
            session.resolved[run.frame.entry],
            session.workspace.data + run.frame.scratch,
            run.frame.scratch_stride,
            &session.executor};
  walk.profile = session.profiles[run.frame.entry];
  if (cancellable) {
    walk.cancelled = session.options.cancelled;
    walk.user = session.options.user;
  }
  if (run_entry(walk)) {
    session.tapped = {run.frame.entry, run.frame.sizes, run.frame.planned};
    return TC_OK;
  }
  return session.message.fail(TC_E_CANCELLED, "cancelled");
}

tc_status run_to_heads(tc_session& session, EntryId entry, const tc_batch* batch, Role role, const char* name,
                       void* const* outputs) {
  const ModelDesc& desc = *session.model->desc;
  const void* wanted[RoleEnd] = {};
  tc_status status = require_entry(desc, entry, session.message);
  Inputs inputs;
  if (status == TC_OK) status = check_batch(desc, entry, batch, inputs, session.message);
  if (status == TC_OK) status = bind_heads(desc, entry, role, name, outputs, wanted, session.message);
  SessionRun run;
  if (status == TC_OK) status = prepare(session, entry, inputs, run);
  if (status != TC_OK) return status;
  set_roles(run.bindings, wanted);
  return execute(session, run, true);
}

tc_status run_to_array(tc_session& session, EntryId entry, const tc_batch* batch, Role role, const char* name,
                       void* output) {
  const ModelDesc& desc = *session.model->desc;
  tc_status status = require_entry(desc, entry, session.message);
  Inputs inputs;
  if (status == TC_OK) status = check_batch(desc, entry, batch, inputs, session.message);
  if (status == TC_OK) status = check_pointer(name, output, real_bytes(desc), session.message);
  SessionRun run;
  if (status == TC_OK) status = prepare(session, entry, inputs, run);
  if (status != TC_OK) return status;
  run.bindings.roles[role] = output;
  return execute(session, run, true);
}

namespace {

void destroy_session(tc_session* session) {
  session->pool.stop();
  session->allocator.release(session->cache);
  session->allocator.release(session->workspace);
  for (int32_t i = 0; i < session->model->desc->edit_count; ++i) release_edit(session->edits[i], session->allocator);
  Allocator allocator = session->allocator;
  Block self = session->self;
  session->~tc_session();
  allocator.release(self);
}

tc_status run_loss(tc_session& session, const tc_batch* batch, double* mean) {
  const ModelDesc& desc = *session.model->desc;
  tc_status status = require_entry(desc, EntryLoss, session.message);
  Inputs inputs;
  if (status == TC_OK) status = check_batch(desc, EntryLoss, batch, inputs, session.message);
  if (status == TC_OK) status = check_pointer("mean", mean, sizeof(double), session.message);
  SessionRun run;
  if (status == TC_OK) status = prepare(session, EntryLoss, inputs, run);
  if (status == TC_OK) status = execute(session, run, true);
  if (status != TC_OK) return status;
  session.losses = losses_of(desc, run.frame, session.workspace.data);
  *mean = whole_loss(desc, session.losses).mean();
  return TC_OK;
}

/// Allocates what an entry needs besides workspace.
tc_status reserve_blocks(tc_session& session, EntryId entry, const Sizes& sizes) {
  tc_model& model = *session.model;
  tc_status status = TC_OK;
  if (entry == EntryTrain || entry == EntryVjp || entry == EntryStep) {
    status = need_gradients(model, session.executor, session.message);
  }
  if (status == TC_OK && entry == EntryStep) status = need_moments(model, session.executor, session.message);
  const bool cached = entry == EntryDecode || entry == EntryEncode;
  if (status != TC_OK || !cached || session.cache.data) return status;
  return session.allocator.grow(session.cache, cache_layout(*model.desc, sizes).bytes, "the cache",
                                session.message);
}

tc_status reserve(tc_session& session, int entry, int64_t B, int64_t T, int64_t S) {
  const ModelDesc& desc = *session.model->desc;
  if (entry < 0 || entry >= EntryEnd) {
    return session.message.fail(TC_E_ARGUMENT, "entry is %d, expected 0 to %d", entry, EntryEnd - 1);
  }
  const EntryId id = static_cast<EntryId>(entry);
  tc_status status = require_entry(desc, id, session.message);
  const int64_t capacity = session.cache_capacity > 0 ? session.cache_capacity
                           : desc.max_seq > 0         ? desc.max_seq
                                                      : T;
  const Sizes sizes = sizes_for(desc, id, B, T, S, capacity);
  if (status == TC_OK) status = check_sizes(desc, id, sizes, session.message);
  if (status == TC_OK) status = need_workspace(session, frame_of(desc, id, sizes, session.options.threads));
  return status == TC_OK ? reserve_blocks(session, id, sizes) : status;
}

}  // namespace

}  // namespace tc

extern "C" {

tc_status tc_rt_session_create(tc_model* model, const tc_options* options, tc_session** session) {
  return tc::create_session(model, options, session);
}

void tc_rt_session_destroy(tc_session* session) {
  if (session) tc::destroy_session(session);
}

tc_status tc_rt_reserve(tc_session* session, int entry, int64_t B, int64_t T, int64_t S) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  return tc::reserve(*session, entry, B, T, S);
}

tc_status tc_rt_forward(tc_session* session, const tc_batch* batch, int last, void* const* outputs) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  return tc::run_to_heads(*session, last ? tc::EntryLast : tc::EntryInfer, batch, tc::RoleOutput, "outputs", outputs);
}

tc_status tc_rt_loss(tc_session* session, const tc_batch* batch, double* mean) {
  const tc::SessionCall call(session);
  return call.status() == TC_OK ? tc::run_loss(*session, batch, mean) : call.status();
}

tc_status tc_rt_logprobs(tc_session* session, const tc_batch* batch, void* out) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  if (session->model->desc->head_count > 1) {
    return session->message.fail(TC_E_STATE, "the model %s has several heads: see head_logprobs",
                                 session->model->desc->name);
  }
  return tc::run_to_array(*session, tc::EntryLogprobs, batch, tc::RoleLogprobs, "out", out);
}

tc_status tc_rt_head_logprobs(tc_session* session, const tc_batch* batch, void* const* outs) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  return tc::run_to_heads(*session, tc::EntryLogprobs, batch, tc::RoleLogprobs, "outs", outs);
}

tc_status tc_rt_losses(tc_session* session, double* sums, double* counts) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  const int32_t heads = session->model->desc->head_count;
  for (int32_t head = 0; head < heads; ++head) {
    if (sums) sums[head] = session->losses.sums[head];
    if (counts) counts[head] = session->losses.counts[head];
  }
  return TC_OK;
}

int tc_rt_threads(const tc_session* session) { return session ? session->options.threads : 0; }

const char* tc_rt_message(const tc_session* session) {
  if (!session) return "";
  if (session->busy.load()) return "the session is busy: one thread at a time";
  return session->message.text;
}

}  // extern "C"
