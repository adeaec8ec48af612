// Values inside the model that its description taps: where the last run has left them.
#include <string.h>

#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/structs.h"

namespace tc {

namespace {

const TapDesc* find_tap(const EntryDesc& entry, int32_t index, bool gradient) {
  for (int32_t i = 0; i < entry.tap_count; ++i) {
    if (entry.taps[i].tap == index && (entry.taps[i].gradient != 0) == gradient) return &entry.taps[i];
  }
  return nullptr;
}

tc_status tap(tc_session& session, int32_t index, bool gradient, tc_array* array) {
  const ModelDesc& desc = *session.model->desc;
  Message& message = session.message;
  if (index < 0 || index >= desc.tap_count) {
    return message.fail(TC_E_ARGUMENT, "the tap is number %d, but %s has %d", index, desc.name, desc.tap_count);
  }
  const Tapped& left = session.tapped;
  const TapDesc* found = left.entry < 0 ? nullptr : find_tap(desc.entries[left.entry], index, gradient);
  if (!found) {
    return message.fail(TC_E_STATE, "the session's last call has left no %s of '%s'", gradient ? "gradient" : "value",
                        desc.taps[index]);
  }
  tc_array values;
  memset(&values, 0, sizeof values);
  values.data = session.workspace.data + left.planned + evaluate(desc.code + found->offset, left.sizes);
  values.rank = found->rank;
  for (int i = 0; i < 4; ++i) values.shape[i] = evaluate(desc.code + found->dims[i], left.sizes);
  const tc_status status = write_struct(array, values);
  return status == TC_OK ? status : message.fail(status, "array is NULL, or its size is not set");
}

}  // namespace

}  // namespace tc

extern "C" {

tc_status tc_rt_tap_info(int32_t index, tc_tap* info) {
  const tc::ModelDesc& desc = tc_model_desc;
  if (index < 0 || index >= desc.tap_count) return TC_E_ARGUMENT;
  tc_tap values;
  memset(&values, 0, sizeof values);
  values.name = desc.taps[index];
  for (int e = 0; e < tc::EntryEnd; ++e) {
    if (tc::find_tap(desc.entries[e], index, false)) values.values |= 1u << e;
    if (tc::find_tap(desc.entries[e], index, true)) values.gradients |= 1u << e;
  }
  return tc::write_struct(info, values);
}

tc_status tc_rt_tap(tc_session* session, int32_t index, int gradient, tc_array* array) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  return tc::tap(*session, index, gradient != 0, array);
}

}  // extern "C"
