// Gradients and what changes parameters: backward, accumulate, vjp, step, train_step, zero_grad, merge_lora.
#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/random.h"

namespace tc {

namespace {

void clear_gradients(tc_session& session) {
  tc_model& model = *session.model;
  if (model.gradients.data) clear(model.gradients.data, model.gradients.bytes, session.executor);
  model.state.divisor = 0;
  model.state.complete = 0;
}

/// `drops`: the call counts as one that drops. A cancelled pass has added part of its gradients: none are left, rather than wrong ones.
tc_status run_pass(tc_session& session, SessionRun& run, bool drops) {
  tc_state& state = session.model->state;
  hold_dropout(run.frame, session.workspace.data, state.seed, state.call, drops);
  if (drops) state.call += 1;
  const tc_status status = execute(session, run, true);
  if (status != TC_OK) clear_gradients(session);
  return status;
}

/// Checks and memory of a pass that adds gradients; nothing has changed when it fails.
tc_status prepare_pass(tc_session& session, EntryId entry, const tc_batch* batch, SessionRun& run) {
  const ModelDesc& desc = *session.model->desc;
  tc_status status = require_entry(desc, entry, session.message);
  Inputs inputs;
  if (status == TC_OK) status = check_batch(desc, entry, batch, inputs, session.message);
  if (status == TC_OK) status = need_gradients(*session.model, session.executor, session.message);
  return status == TC_OK ? prepare(session, entry, inputs, run) : status;
}

/// `mean`: gradients of the mean loss; else of the sum. Of several losses it is always that of their means.
tc_status run_train(tc_session& session, SessionRun& run, bool mean, Loss& loss) {
  const ModelDesc& desc = *session.model->desc;
  if (run.frame.held[RoleMean] >= 0) number(session, run, RoleMean) = mean || has_several_losses(desc) ? 1 : 0;
  const tc_status status = run_pass(session, run, true);
  if (status != TC_OK) return status;
  session.losses = losses_of(desc, run.frame, session.workspace.data);
  loss = whole_loss(desc, session.losses);
  return TC_OK;
}

tc_status backward(tc_session& session, const tc_batch* batch, double* mean) {
  SessionRun run;
  tc_status status = prepare_pass(session, EntryTrain, batch, run);
  if (status != TC_OK) return status;
  clear_gradients(session);
  Loss loss;
  status = run_train(session, run, true, loss);
  if (status != TC_OK) return status;
  session.model->state.divisor = 1;
  session.model->state.complete = 1;
  if (mean) *mean = loss.mean();
  return TC_OK;
}

tc_status accumulate(tc_session& session, const tc_batch* batch, double* sum, double* count) {
  tc_model& model = *session.model;
  if (model.state.complete) {
    return session.message.fail(TC_E_STATE,
                                "gradients are complete after backward or vjp: step or zero_grad before "
                                "accumulate");
  }
  SessionRun run;
  Loss loss;
  tc_status status = prepare_pass(session, EntryTrain, batch, run);
  if (status == TC_OK) status = run_train(session, run, false, loss);
  if (status != TC_OK) return status;
  model.state.divisor += loss.count;
  if (sum) *sum = loss.sum;
  if (count) *count = loss.count;
  return TC_OK;
}

struct GradInput {
  Role input, gradient;
  const char* name;
};
constexpr GradInput kGradInputs[] = {{RoleX, RoleGradX, "grad_inputs of x"},
                                     {RoleSrc, RoleGradSrc, "grad_inputs of src"},
                                     {RoleTgt, RoleGradTgt, "grad_inputs of tgt"},
                                     {RoleMemory, RoleGradMemory, "grad_inputs of memory"},
                                     {RoleImage, RoleGradImage, "grad_inputs of image"}};

}  // namespace

tc_status bind_grad_inputs(const ModelDesc& desc, void* const* grad_inputs, const void** roles,
                           Message& message) {
  int next = 0;
  for (const GradInput& entry : kGradInputs) {
    const ExternalDesc* input = find_external(desc.entries[EntryVjp], entry.input);
    if (!input || input->dtype == TypeI32) continue;
    void* target = grad_inputs ? grad_inputs[next] : nullptr;
    ++next;
    if (!target) continue;
    const tc_status status = check_pointer(entry.name, target, real_bytes(desc), message);
    if (status != TC_OK) return status;
    roles[entry.gradient] = target;
  }
  return TC_OK;
}

namespace {

tc_status vjp(tc_session& session, const tc_batch* batch, int training, const void* const* grad_outputs,
              void* const* grad_inputs) {
  const ModelDesc& desc = *session.model->desc;
  const void* wanted[RoleEnd] = {};
  tc_status status = bind_heads(desc, EntryVjp, RoleGradOutput, "grad_outputs", grad_outputs, wanted, session.message);
  if (status == TC_OK) status = bind_grad_inputs(desc, grad_inputs, wanted, session.message);
  SessionRun run;
  if (status == TC_OK) status = prepare_pass(session, EntryVjp, batch, run);
  if (status != TC_OK) return status;
  set_roles(run.bindings, wanted);
  clear_gradients(session);
  status = run_pass(session, run, training != 0);
  if (status != TC_OK) return status;
  session.model->state.divisor = 1;
  session.model->state.complete = 1;
  return TC_OK;
}

/// Everything that a step needs before it begins.
tc_status prepare_step(tc_session& session, SessionRun& run) {
  const ModelDesc& desc = *session.model->desc;
  tc_status status = require_entry(desc, EntryStep, session.message);
  if (status == TC_OK) status = need_gradients(*session.model, session.executor, session.message);
  if (status == TC_OK) status = need_moments(*session.model, session.executor, session.message);
  return status == TC_OK ? prepare(session, EntryStep, Inputs{}, run) : status;
}

/// Once begun, an update is completed: the hook is asked before it alone.
tc_status apply_step(tc_session& session, const tc_adamw& settings, double* norm) {
  tc_model& model = *session.model;
  const double divisor = settings.count > 0 ? settings.count : model.state.divisor;
  if (norm) *norm = 0;
  if (divisor == 0) return TC_OK;
  SessionRun run;
  tc_status status = prepare_step(session, run);
  if (status != TC_OK) return status;
  if (session.options.cancelled && session.options.cancelled(session.options.user)) {
    return session.message.fail(TC_E_CANCELLED, "cancelled");
  }
  hold_update(*model.desc, run.frame, session.workspace.data,
              {settings, model.state.step_count + 1, divisor});
  status = execute(session, run, false);
  if (status != TC_OK) return status;
  model.state.step_count += 1;
  model.state.divisor = 0;
  model.state.complete = 0;
  if (norm) *norm = number(session, run, RoleNorm);
  return TC_OK;
}

tc_status step(tc_session& session, const tc_adamw* given, double* norm) {
  tc_adamw settings;
  tc_status status = require_entry(*session.model->desc, EntryStep, session.message);
  if (status == TC_OK) status = check_update(*session.model->desc, given, settings, session.message);
  return status == TC_OK ? apply_step(session, settings, norm) : status;
}

tc_status train_step(tc_session& session, const tc_batch* batch, const tc_adamw* given, double* mean) {
  tc_adamw settings;
  SessionRun run;
  // The update's memory before the pass: what can fail fails while nothing has changed.
  tc_status status = require_entry(*session.model->desc, EntryTrain, session.message);
  if (status == TC_OK) status = require_entry(*session.model->desc, EntryStep, session.message);
  if (status == TC_OK) status = check_update(*session.model->desc, given, settings, session.message);
  Inputs inputs;
  if (status == TC_OK) status = check_batch(*session.model->desc, EntryTrain, batch, inputs, session.message);
  if (status == TC_OK) status = prepare_step(session, run);
  if (status == TC_OK) status = prepare_pass(session, EntryTrain, batch, run);
  if (status != TC_OK) return status;
  clear_gradients(session);
  Loss loss;
  status = run_train(session, run, false, loss);
  if (status != TC_OK) return status;
  session.model->state.divisor = loss.count;
  status = apply_step(session, settings, nullptr);
  if (status == TC_OK && mean) *mean = loss.mean();
  return status;
}

tc_status merge_lora(tc_session& session) {
  SessionRun run;
  tc_status status = require_entry(*session.model->desc, EntryMerge, session.message);
  if (status == TC_OK) status = prepare(session, EntryMerge, Inputs{}, run);
  return status == TC_OK ? execute(session, run, false) : status;
}

/// Enters session and model, runs, leaves.
template <class Function>
tc_status as_writer(tc_session* session, Function function) {
  const SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  const WritingCall writing(*session);
  if (writing.status() != TC_OK) return writing.status();
  return function(*session);
}

}  // namespace

}  // namespace tc

extern "C" {

tc_status tc_rt_backward(tc_session* session, const tc_batch* batch, double* mean) {
  return tc::as_writer(session, [&](tc_session& s) { return tc::backward(s, batch, mean); });
}

tc_status tc_rt_accumulate(tc_session* session, const tc_batch* batch, double* sum, double* count) {
  return tc::as_writer(session, [&](tc_session& s) { return tc::accumulate(s, batch, sum, count); });
}

tc_status tc_rt_vjp(tc_session* session, const tc_batch* batch, int training, const void* const* grad_outputs,
                    void* const* grad_inputs) {
  return tc::as_writer(session,
                       [&](tc_session& s) { return tc::vjp(s, batch, training, grad_outputs, grad_inputs); });
}

tc_status tc_rt_step(tc_session* session, const tc_adamw* settings, double* norm) {
  return tc::as_writer(session, [&](tc_session& s) { return tc::step(s, settings, norm); });
}

tc_status tc_rt_train_step(tc_session* session, const tc_batch* batch, const tc_adamw* settings,
                           double* mean) {
  return tc::as_writer(session, [&](tc_session& s) { return tc::train_step(s, batch, settings, mean); });
}

tc_status tc_rt_merge_lora(tc_session* session) {
  return tc::as_writer(session, [&](tc_session& s) { return tc::merge_lora(s); });
}

tc_status tc_rt_zero_grad(tc_session* session) {
  return tc::as_writer(session, [&](tc_session& s) {
    tc::clear_gradients(s);
    return TC_OK;
  });
}

}  // extern "C"
