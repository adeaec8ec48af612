// Models: creation, parameters by name, blocks, training state.
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include <new>

#include "runtime/cpu.h"
#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/random.h"
#include "runtime/structs.h"
#include "runtime/weights.h"

namespace tc {

tc_status read_options(const tc_options* given, const tc_options* inherited, tc_options& options,
                       Message& message) {
  if (given) {
    const tc_status status = read_struct("options", given, options, message);
    if (status != TC_OK) return status;
    if (options.threads < 0) {
      return message.fail(TC_E_ARGUMENT, "options.threads is %d, expected at least 0 (0: all cores)",
                          options.threads);
    }
    if (!options.alloc != !options.release) {
      return message.fail(TC_E_ARGUMENT,
                          "options.alloc and options.release go together, but only one is given");
    }
  } else {
    memset(&options, 0, sizeof options);
    if (inherited) options = *inherited;
    options.memory_limit = 0;
  }
  if (options.threads == 0) options.threads = available_cores();
  if (options.threads > kMaxThreads) options.threads = kMaxThreads;
  options.error = nullptr;
  options.error_size = 0;
  return TC_OK;
}

Executor executor_of(const ModelDesc& desc, const tc_options& options, Pool* pool) {
  Executor executor;
  executor.pool = pool;
  executor.parallel_for = options.parallel_for;
  executor.user = options.user;
  executor.threads = options.threads;
  executor.denormals = desc.real == TypeF32 ? Denormals::Flush : Denormals::Keep;
  return executor;
}

int64_t model_bytes() { return align_up(static_cast<int64_t>(sizeof(tc_model))); }

Allocator unlimited(const tc_model& model) {
  tc_options options = model.options;
  options.memory_limit = 0;
  Allocator allocator;
  allocator.configure(options);
  return allocator;
}

void tell(tc_model& model, const Message& message) {
  while (model.telling.exchange(1)) sched_yield();
  model.message = message;
  model.telling.store(0);
}

char* second_moments(const tc_model& model) {
  return model.moments.data ? model.moments.data + align_up(gradient_bytes(*model.desc)) : nullptr;
}

ModelThreads::ModelThreads(tc_model& model, Message& message) : allocator_(unlimited(model)) {
  Pool* pool = nullptr;
  status_ = allocator_.allocate(memory_, sizeof(Pool), "threads", message);
  if (status_ == TC_OK) {
    pool = new (memory_.data) Pool;
    pool->configure(model.options.threads);
  }
  executor_ = executor_of(*model.desc, model.options, pool);
  executor_.denormals = Denormals::Keep;
}

ModelThreads::~ModelThreads() {
  if (executor_.pool) executor_.pool->stop();
  allocator_.release(memory_);
}

FileCall::FileCall(tc_model& model, bool alone, Message& message) : model_(model), alone_(alone) {
  message.clear();
  int before = 0;
  entered_ = model.writing.compare_exchange_strong(before, kInFile);
  status_ = entered_ ? TC_OK
                     : message.fail(TC_E_STATE, before == kInFile ? "another thread loads or saves this model"
                                                                  : "a session is training this model");
  if (!entered_ || !alone) return;
  // Both sides set their own mark first and look at the other's then: at least one sees the other.
  model.loading.store(1);
  if (model.running.load() > 0) status_ = message.fail(TC_E_STATE, "a session of this model is running");
}

FileCall::~FileCall() {
  if (!entered_) return;
  if (alone_) model_.loading.store(0);
  model_.writing.store(0);
}

namespace {

void destroy_model(tc_model* model) {
  model->allocator.release(model->moments);
  model->allocator.release(model->gradients);
  model->allocator.release(model->parameters);
  Allocator allocator = model->allocator;
  Block self = model->self;
  model->~tc_model();
  allocator.release(self);
}

tc_status fill_parameters(tc_model& model) {
  const ModelDesc& desc = *model.desc;
  const tc_status status =
      model.allocator.allocate(model.parameters, block_bytes(desc), "parameters", model.message);
  if (status != TC_OK) return status;
  const ModelThreads threads(model, model.message);
  if (threads.status() != TC_OK) return threads.status();
  initialise(desc, model.options.seed, model.parameters.data, threads.executor());
  return TC_OK;
}

tc_status create(const ModelDesc& desc, const tc_options* given, tc_model** out, Message& message) {
  tc_options options;
  tc_status status = read_options(given, nullptr, options, message);
  if (status != TC_OK) return status;
  if (cpu_level() < desc.isa) {
    return message.fail(TC_E_CPU, "%s was compiled for %s (x86-64-v%d), but this processor offers x86-64-v%d",
                        desc.name, desc.target, desc.isa, cpu_level());
  }
  Allocator allocator;
  allocator.configure(options);
  Block self;
  status = allocator.allocate(self, model_bytes(), "the model", message);
  if (status != TC_OK) return status;
  tc_model* model = new (self.data) tc_model{};
  model->desc = &desc;
  model->options = options;
  model->allocator = allocator;
  model->self = self;
  model->state.size = sizeof(tc_state);
  model->state.seed = options.seed;
  status = fill_parameters(*model);
  if (status != TC_OK) {
    message = model->message;
    destroy_model(model);
    return status;
  }
  *out = model;
  return TC_OK;
}

tc_status need_block(tc_model& model, Block& block, int64_t bytes, const char* purpose,
                     const Executor& executor, Message& message) {
  if (block.data) return TC_OK;
  const tc_status status = model.allocator.allocate(block, bytes, purpose, message);
  if (status == TC_OK) clear(block.data, block.bytes, executor);
  return status;
}

/// `trained`: only what is not frozen has a place in that block.
char* in_block(const ModelDesc& desc, char* block, const char* name, bool trained) {
  const ParamDesc* parameter = find_parameter(desc, name);
  if (!parameter || !block || (trained && parameter->frozen)) return nullptr;
  return block + parameter->offset * real_bytes(desc);
}

}  // namespace

tc_status create_model(const ModelDesc& desc, const tc_options* options, tc_model** model) {
  Message message;
  message.clear();
  if (!model) return TC_E_ARGUMENT;
  *model = nullptr;
  const tc_status status = create(desc, options, model, message);
  // `error` is there only in callers whose struct has it.
  if (status != TC_OK && options && options->size >= sizeof(tc_options)) {
    message.copy_to(options->error, options->error_size);
  }
  return status;
}

tc_status need_gradients(tc_model& model, const Executor& executor, Message& message) {
  return need_block(model, model.gradients, gradient_bytes(*model.desc), "gradients", executor, message);
}

tc_status need_moments(tc_model& model, const Executor& executor, Message& message) {
  return need_block(model, model.moments, times(2, align_up(gradient_bytes(*model.desc))), "moments",
                    executor, message);
}

}  // namespace tc

extern "C" {

tc_status tc_rt_model_create(const tc_options* options, tc_model** model) {
  return tc::create_model(tc_model_desc, options, model);
}

void tc_rt_model_destroy(tc_model* model) {
  if (model) tc::destroy_model(model);
}

tc_status tc_rt_load(tc_model* model, const char* path, int strict) {
  if (!model) return TC_E_ARGUMENT;
  tc::Message message;
  tc::FileCall call(*model, true, message);
  tc_status status = call.status();
  if (status == TC_OK && !path) status = message.fail(TC_E_ARGUMENT, "path is NULL");
  if (status == TC_OK) status = tc::load_weights(*model, path, strict != 0, message);
  tc::tell(*model, message);
  return status;
}

tc_status tc_rt_save(const tc_model* model, const char* path, int with_optimizer) {
  if (!model) return TC_E_ARGUMENT;
  tc_model& marked = *const_cast<tc_model*>(model);  // its marks and its message; what is saved stays as it is
  tc::Message message;
  tc::FileCall call(marked, false, message);
  tc_status status = call.status();
  if (status == TC_OK && !path) status = message.fail(TC_E_ARGUMENT, "path is NULL");
  if (status == TC_OK) status = tc::save_weights(*model, path, with_optimizer != 0, message);
  tc::tell(marked, message);
  return status;
}

void* tc_rt_parameter(tc_model* model, const char* name) {
  return model ? tc::in_block(*model->desc, model->parameters.data, name, false) : nullptr;
}

void* tc_rt_gradient(tc_model* model, const char* name) {
  return model ? tc::in_block(*model->desc, model->gradients.data, name, true) : nullptr;
}

void* tc_rt_moment(tc_model* model, int which, const char* name) {
  if (!model || (which != 1 && which != 2)) return nullptr;
  return tc::in_block(*model->desc, which == 1 ? model->moments.data : tc::second_moments(*model), name, true);
}

void* tc_rt_block(tc_model* model, int which) {
  if (!model) return nullptr;
  switch (which) {
    case TC_BLOCK_PARAMETERS:
      return model->parameters.data;
    case TC_BLOCK_GRADIENTS:
      return model->gradients.data;
    case TC_BLOCK_MOMENT1:
      return model->moments.data;
    case TC_BLOCK_MOMENT2:
      return tc::second_moments(*model);
    default:
      return nullptr;
  }
}

tc_status tc_rt_allocate(tc_model* model, int gradients, int moments) {
  if (!model) return TC_E_ARGUMENT;
  model->message.clear();
  const tc::Executor serial = tc::executor_of(*model->desc, model->options, nullptr);
  tc_status status = gradients ? tc::need_gradients(*model, serial, model->message) : TC_OK;
  if (status == TC_OK && moments) status = tc::need_moments(*model, serial, model->message);
  return status;
}

tc_status tc_rt_get_state(const tc_model* model, tc_state* state) {
  if (!model) return TC_E_ARGUMENT;
  tc_state values = model->state;
  values.gradients = model->gradients.data != nullptr;
  values.moments = model->moments.data != nullptr;
  return tc::write_struct(state, values);
}

tc_status tc_rt_set_state(tc_model* model, const tc_state* state) {
  if (!model) return TC_E_ARGUMENT;
  tc_state values;
  const tc_status status = tc::read_struct("state", state, values, model->message);
  if (status != TC_OK) return status;
  const tc::FloatingPointScope scope(tc::Denormals::Keep);
  if (!(values.divisor >= 0 && values.divisor < __builtin_inf())) {
    return model->message.fail(TC_E_ARGUMENT, "state.divisor is %g, expected a finite number of at least 0",
                               values.divisor);
  }
  model->state.seed = values.seed;
  model->state.call = values.call;
  model->state.step_count = values.step_count;
  model->state.divisor = values.divisor;
  return TC_OK;
}

const char* tc_rt_model_message(const tc_model* model) { return model ? model->message.text : ""; }

}  // extern "C"
