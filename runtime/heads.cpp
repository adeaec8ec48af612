#include "runtime/heads.h"

#include <stdio.h>

#include "runtime/floating_point.h"

namespace tc {

namespace {

using Long = long long;

double real_at(const ModelDesc& model, const void* values, int64_t i) {
  return model.real == TypeF64 ? static_cast<const double*>(values)[i] : double{static_cast<const float*>(values)[i]};
}

/// One head's targets and weights, in one entry.
class HeadCheck {
 public:
  HeadCheck(const ModelDesc& model, EntryId entry, int32_t head, Inputs& inputs, Message& message)
      : model_(model),
        entry_(model.entries[entry]),
        desc_(model.heads[head]),
        head_(head),
        in_(inputs),
        message_(message) {}

  tc_status run(const tc_batch& batch);

 private:
  tc_status take(Role role, const char* name, const void* const* arrays, bool required);
  bool is_real(int64_t row) const;
  tc_status row(int64_t row) const;
  tc_status class_target(int64_t row) const;
  tc_status number_targets(int64_t row) const;
  tc_status weight(int64_t row) const;
  int64_t tokens() const { return desc_.source ? in_.sizes.S : in_.sizes.T; }
  const void* given(Role role) const { return in_.roles[head_role(role, head_)]; }
  /// "2,4" of tokens, "2" of sequences.
  struct Index {
    char text[48];
  };
  Index index(int64_t row) const;

  const ModelDesc& model_;
  const EntryDesc& entry_;
  const HeadDesc& desc_;
  const int32_t head_;
  Inputs& in_;
  Message& message_;
};

tc_status HeadCheck::take(Role role, const char* name, const void* const* arrays, bool required) {
  const ExternalDesc* external = find_external(entry_, head_role(role, head_));
  if (!external) return TC_OK;
  const HeadArray label(name, desc_);
  const void* array = arrays ? arrays[head_] : nullptr;
  if (!array && !required) return TC_OK;
  if (!array) return message_.fail(TC_E_ARGUMENT, "%s is missing", arrays ? label.text : name);
  in_.roles[head_role(role, head_)] = array;
  return check_pointer(label.text, array, dtype_bytes(external->dtype), message_);
}

HeadCheck::Index HeadCheck::index(int64_t row) const {
  Index index;
  if (desc_.per_token) {
    snprintf(index.text, sizeof index.text, "%lld,%lld", Long{row / tokens()}, Long{row % tokens()});
  } else {
    snprintf(index.text, sizeof index.text, "%lld", Long{row});
  }
  return index;
}

/// A token, or a sequence that has one.
bool HeadCheck::is_real(int64_t row) const {
  const bool source = desc_.source != 0;
  if (desc_.per_token) return in_.real(row / tokens(), row % tokens(), source);
  for (int64_t t = 0; t < tokens(); ++t) {
    if (in_.real(row, t, source)) return true;
  }
  return false;
}

tc_status HeadCheck::class_target(int64_t row) const {
  const int32_t id = static_cast<const int32_t*>(given(RoleTargets))[row];
  if (id >= 0 && id < desc_.out_width) return TC_OK;
  return message_.fail(TC_E_ARGUMENT, "%s[%s] is %d, expected 0 to %lld, or %lld to ignore it",
                       HeadArray("targets", desc_).text, index(row).text, id, Long{desc_.out_width - 1},
                       Long{desc_.ignore_index});
}

tc_status HeadCheck::number_targets(int64_t row) const {
  if (desc_.loss != TC_LOSS_BINARY_CROSS_ENTROPY) return TC_OK;
  for (int64_t i = 0; i < desc_.out_width; ++i) {
    const double target = real_at(model_, given(RoleTargets), row * desc_.out_width + i);
    if (target >= 0 && target <= 1) continue;  // NaN is neither
    return message_.fail(TC_E_ARGUMENT, "%s[%s,%lld] is %g, expected 0 to 1", HeadArray("targets", desc_).text,
                         index(row).text, Long{i}, target);
  }
  return TC_OK;
}

tc_status HeadCheck::weight(int64_t row) const {
  const double weight = real_at(model_, given(RoleWeights), row);
  if (weight >= 0 && weight < __builtin_inf()) return TC_OK;
  return message_.fail(TC_E_ARGUMENT, "%s[%s] is %g, expected a finite number of at least 0",
                       HeadArray("weights", desc_).text, index(row).text, weight);
}

/// What does not count is not looked at, in the order of the kernels: mask, ignore_index, weight, target.
tc_status HeadCheck::row(int64_t row) const {
  if (!is_real(row)) return TC_OK;
  const bool classes = desc_.loss == TC_LOSS_CROSS_ENTROPY;
  if (classes && static_cast<const int32_t*>(given(RoleTargets))[row] == desc_.ignore_index) return TC_OK;
  if (given(RoleWeights)) {
    const tc_status status = weight(row);
    if (status != TC_OK || real_at(model_, given(RoleWeights), row) == 0) return status;
  }
  return classes ? class_target(row) : number_targets(row);
}

tc_status HeadCheck::run(const tc_batch& batch) {
  if (batch.targets && desc_.loss == TC_LOSS_NONE && batch.targets[head_]) {
    return message_.fail(TC_E_ARGUMENT, "%s is given, but the head has no loss", HeadArray("targets", desc_).text);
  }
  tc_status status = take(RoleTargets, "targets", batch.targets, true);
  if (status == TC_OK) status = take(RoleWeights, "weights", batch.weights, false);
  if (status != TC_OK || !given(RoleTargets)) return status;
  const int64_t rows = desc_.per_token ? in_.sizes.B * tokens() : in_.sizes.B;
  for (int64_t r = 0; status == TC_OK && r < rows; ++r) status = row(r);
  return status;
}

}  // namespace

HeadArray::HeadArray(const char* array, const HeadDesc& head) {
  snprintf(text, sizeof text, head.name[0] ? "%s.%s" : "%s[0]", array, head.name);
}

tc_status check_heads(const ModelDesc& model, EntryId entry, const tc_batch& batch, Inputs& inputs, Message& message) {
  const FloatingPointScope scope(Denormals::Keep);  // a comparison with NaN is an exception that the host may trap
  tc_status status = TC_OK;
  for (int32_t head = 0; status == TC_OK && head < model.head_count; ++head) {
    status = HeadCheck(model, entry, head, inputs, message).run(batch);
  }
  return status;
}

tc_status bind_heads(const ModelDesc& model, EntryId entry, Role role, const char* name, const void* const* arrays,
                     const void** roles, Message& message) {
  if (!arrays) return message.fail(TC_E_ARGUMENT, "%s is NULL", name);
  for (int32_t head = 0; head < model.head_count; ++head) {
    const Role own = head_role(role, head);
    if (!find_external(model.entries[entry], own)) continue;
    const tc_status status =
        check_pointer(HeadArray(name, model.heads[head]).text, arrays[head], real_bytes(model), message);
    if (status != TC_OK) return status;
    roles[own] = arrays[head];
  }
  return TC_OK;
}

Losses losses_of(const ModelDesc& model, const Frame& frame, char* memory) {
  Losses losses;
  for (int32_t head = 0; head < model.head_count; ++head) {
    const Role sum = head_role(RoleLossSum, head), count = head_role(RoleLossCount, head);
    if (frame.held[sum] >= 0) losses.sums[head] = held_number(frame, memory, sum);
    if (frame.held[count] >= 0) losses.counts[head] = held_number(frame, memory, count);
  }
  return losses;
}

bool has_several_losses(const ModelDesc& model) {
  int32_t count = 0;
  for (int32_t head = 0; head < model.head_count; ++head) count += model.heads[head].loss != TC_LOSS_NONE;
  return count > 1;
}

Loss whole_loss(const ModelDesc& model, const Losses& losses) {
  const FloatingPointScope scope(Denormals::Keep);
  const bool several = has_several_losses(model);
  Loss loss;
  for (int32_t head = 0; head < model.head_count; ++head) {
    if (model.heads[head].loss == TC_LOSS_NONE) continue;
    const double sum = losses.sums[head], count = losses.counts[head];
    loss.sum += model.heads[head].loss_weight * (several ? mean_of(sum, count) : sum);
    if (!several) loss.count = count;
    if (several && count > 0) loss.count = 1;
  }
  return loss;
}

}  // namespace tc
