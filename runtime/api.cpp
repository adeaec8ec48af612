// The table of function pointers, and what it tells of the model.
#include <sched.h>
#include <string.h>

#include <atomic>

#include "runtime/description.h"
#include "runtime/exports.h"
#include "runtime/structs.h"

namespace tc {

namespace {

/// The one writable global: constant once it is filled, by whoever asks first. (Its head is in the generated
/// module, so it cannot be constant data of the run time.)
tc_api table;
enum : int { Empty, Filling, Filled };
std::atomic<int> table_state{Empty};

void fill_table() {
  tc_api filled = {
      1,
      tc_model_desc.build_id,
      tc_model_desc.name,
      tc_model_desc.description,
#define TC_API(result, suffix, parameters) tc_rt_##suffix,
#include "runtime/symbols.def"
  };
  table = filled;
}

tc_info describe(const ModelDesc& desc) {
  tc_info info;
  memset(&info, 0, sizeof info);
  info.real_bytes = static_cast<int32_t>(real_bytes(desc));
  info.kind = desc.kind;
  info.head = desc.head;
  info.heads_count = desc.head_count;
  info.d_model = desc.d_model;
  info.out_width = desc.out_width;
  info.vocab = desc.vocab;
  info.src_vocab = desc.src_vocab;
  info.types = desc.types;
  info.max_seq = desc.max_seq;
  info.classes = desc.classes;
  info.ignore_index = desc.ignore_index;
  info.fixed_B = desc.fixed_batch;
  info.fixed_T = desc.fixed_seq;
  info.fixed_S = desc.fixed_src_seq;
  memcpy(info.image, desc.image, sizeof info.image);
  info.parameter_block = desc.parameter_block;
  info.gradient_block = desc.gradient_block;
  info.parameter_count = desc.param_count;
  info.inputs = declared_inputs(desc);
  for (int e = 0; e < EntryEnd; ++e) info.entries |= desc.entries[e].present ? 1u << e : 0u;
  info.target = desc.target;
  return info;
}

}  // namespace

}  // namespace tc

extern "C" {

const tc_api* tc_rt_api(uint64_t build_id) {
  if (build_id != 0 && build_id != tc_model_desc.build_id) return nullptr;
  int expected = tc::Empty;
  if (tc::table_state.compare_exchange_strong(expected, tc::Filling)) {
    tc::fill_table();
    tc::table_state.store(tc::Filled);
  }
  while (tc::table_state.load() != tc::Filled) sched_yield();
  return &tc::table;
}

const char* tc_rt_status_text(tc_status status) {
  switch (status) {
    case TC_OK:
      return "done";
    case TC_E_ARGUMENT:
      return "wrong argument";
    case TC_E_MEMORY:
      return "not enough memory";
    case TC_E_FILE:
      return "file cannot be read or written";
    case TC_E_FORMAT:
      return "file content is wrong";
    case TC_E_CPU:
      return "processor lacks what the library needs";
    case TC_E_STATE:
      return "not possible in this state or with this model";
    case TC_E_CANCELLED:
      return "cancelled";
  }
  return "unknown status";
}

tc_status tc_rt_info(tc_info* info) { return tc::write_struct(info, tc::describe(tc_model_desc)); }

tc_status tc_rt_head_info(int32_t index, tc_head* info) {
  if (index < 0 || index >= tc_model_desc.head_count) return TC_E_ARGUMENT;
  const tc::HeadDesc& head = tc_model_desc.heads[index];
  tc_head values;
  memset(&values, 0, sizeof values);
  values.name = head.name;
  values.type = head.type;
  values.loss = head.loss;
  values.per_token = head.per_token;
  values.out_width = head.out_width;
  values.ignore_index = head.ignore_index;
  values.loss_weight = head.loss_weight;
  values.source = head.source;
  return tc::write_struct(info, values);
}

tc_status tc_rt_parameter_info(int32_t index, tc_parameter* info) {
  if (index < 0 || index >= tc_model_desc.param_count) return TC_E_ARGUMENT;
  const tc::ParamDesc& parameter = tc_model_desc.params[index];
  tc_parameter values;
  memset(&values, 0, sizeof values);
  values.name = parameter.name;
  values.offset = parameter.offset;
  values.elements = parameter.elements;
  for (int i = 0; i < parameter.rank; ++i) values.shape[i] = parameter.shape[i];
  values.rank = parameter.rank;
  values.decayed = parameter.decayed;
  values.frozen = parameter.frozen;
  return tc::write_struct(info, values);
}

}  // extern "C"
