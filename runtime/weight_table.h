// What a weight file's header says of this model's tensors: read whole and checked before anything is used.
#pragma once

#include "runtime/file.h"
#include "runtime/memory.h"
#include "runtime/plan.h"
#include "runtime/safetensors.h"
#include "runtime/weights.h"

namespace tc {

/// What the file has for a name that this model knows.
struct Slot {
  int64_t begin, end;  // bytes, from the header's end; begin -1: not there
  StoredType type;
};

class WeightTable {
 public:
  WeightTable(const ModelDesc& desc, Allocator& allocator, Message& message)
      : desc_(desc), allocator_(allocator), message_(message), count_(desc.param_count) {}
  ~WeightTable();
  WeightTable(const WeightTable&) = delete;
  WeightTable& operator=(const WeightTable&) = delete;

  /// The header's form, and each tensor's dtype, size and place.
  tc_status read(const MappedFile& file);
  /// This model's tensors, all of them and no others, of its shapes, one after the other without a gap.
  tc_status check();

  const Slot& parameter(int32_t p) const { return slots_[p]; }
  /// which: 0 | 1
  const Slot& moment(int which, int32_t p) const { return slots_[(1 + which) * int64_t{count_} + p]; }
  /// A second copy of a shared table that the file brings: calls `visit(name, slot, parameter)` for each.
  template <class Visit>
  tc_status each_copy(Visit visit) const;

  int64_t data_begin() const { return data_begin_; }
  bool has_moments() const { return has_moments_; }
  bool has_state() const { return states_ != 0; }
  /// In the order of kStateNames.
  uint64_t state(int which) const { return state_[which]; }
  /// Null where the file has none.
  const char* architecture() const { return architecture_.data; }
  const char* hash() const { return hash_[0] ? hash_ : nullptr; }

 private:
  tc_status allocate();
  tc_status read_length(const MappedFile& file);
  tc_status take_metadata(const JsonString& key, const JsonString& value);
  tc_status take_state(int which, const JsonString& value);
  tc_status take_tensor(const StoredTensor& tensor);
  void check_shape(const StoredTensor& tensor, const ParamDesc& parameter);
  tc_status check_names();
  tc_status check_layout();
  tc_status check_moments();

  int32_t number_of(JsonString name) const;
  int64_t slot_of(JsonString name, int32_t& parameter) const;
  int64_t slot_count() const;
  const char* slot_name(int64_t slot, char* buffer, size_t size) const;

  const ModelDesc& desc_;
  Allocator& allocator_;
  Message& message_;
  int32_t count_;  // parameters
  int64_t data_begin_ = 0, file_bytes_ = 0;
  Block tables_, architecture_;
  Slot* slots_ = nullptr;         // parameters, both moments of each, second copies
  int32_t* by_name_ = nullptr;    // parameters
  int32_t* by_offset_ = nullptr;  // slots that the file has
  bool has_moments_ = false;
  char hash_[20] = {};
  uint64_t state_[3] = {};
  int states_ = 0;  // how many of them the file has
  NameList unknown_;
  Message misfit_{};  // the first tensor of another shape
};

/// Names under which files may bring a second copy of a shared table.
struct SecondCopy {
  const char* name;
  const char* tables[2];  // the first that the model has
};
constexpr SecondCopy kSecondCopies[] = {{"head.weight", {"tgt_emb.weight", "tok_emb.weight"}},
                                        {"src_emb.weight", {"tok_emb.weight", nullptr}},
                                        {"tgt_emb.weight", {"tok_emb.weight", nullptr}},
                                        {"src_pos_emb.weight", {"pos_emb.weight", nullptr}},
                                        {"tgt_pos_emb.weight", {"pos_emb.weight", nullptr}}};
constexpr int kSecondCopyCount = sizeof kSecondCopies / sizeof kSecondCopies[0];
/// The parameter that it is a copy of; -1: this model has none.
int32_t copied_parameter(const ModelDesc& desc, int copy);

template <class Visit>
tc_status WeightTable::each_copy(Visit visit) const {
  for (int copy = 0; copy < kSecondCopyCount; ++copy) {
    const Slot& slot = slots_[3 * int64_t{count_} + copy];
    if (slot.begin < 0) continue;
    const tc_status status = visit(kSecondCopies[copy].name, slot, copied_parameter(desc_, copy));
    if (status != TC_OK) return status;
  }
  return TC_OK;
}

}  // namespace tc
