// Times of an entry's records, for whoever asks.
#include "runtime/exports.h"
#include "runtime/objects.h"

namespace tc {

namespace {

void name_record(const ModelDesc& desc, const RecordDesc& record, tc_record& named) {
  named = tc_record{};
  named.node = desc.strings + record.node;
  if (record.kind == RecordCall) named.kernel = desc.kernel_names[record.kernel];
}

}  // namespace

}  // namespace tc

extern "C" int64_t tc_rt_profile(tc_session* session, int entry, tc_record* records, int64_t count) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK || entry < 0 || entry >= tc::EntryEnd) return 0;
  const tc::ModelDesc& desc = *session->model->desc;
  const tc::EntryDesc& plan = desc.entries[entry];
  if (!records || count < 0) count = 0;
  if (count > plan.record_count) count = plan.record_count;
  for (int64_t i = 0; i < count; ++i) tc::name_record(desc, plan.records[i], records[i]);
  session->profiles[entry] = {records, count};
  return plan.record_count;
}
