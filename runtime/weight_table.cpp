#include "runtime/weight_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/description.h"

namespace tc {

namespace {

using Long = long long;

constexpr size_t kMostArchitecture = 1 << 20;

/// Shell's sort; the last gap is 1, also after one of 2.
template <class Less>
void sort(int32_t* items, int64_t count, Less less) {
  for (int64_t gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
    for (int64_t i = gap; i < count; ++i) {
      const int32_t item = items[i];
      int64_t j = i;
      for (; j >= gap && less(item, items[j - gap]); j -= gap) items[j] = items[j - gap];
      items[j] = item;
    }
  }
}

}  // namespace

void NameList::add(const char* name) {
  ++count_;
  if (shown_ == kMost) return;
  const size_t room = sizeof text_ - used_ - kMoreRoom;
  const int length = snprintf(text_ + used_, room, "%s%s", shown_ ? ", " : ": ", name);
  if (length < 0 || static_cast<size_t>(length) >= room) {
    text_[used_] = 0;
    return;
  }
  used_ += static_cast<size_t>(length);
  ++shown_;
}

const char* NameList::text() {
  if (count_ > shown_) snprintf(text_ + used_, sizeof text_ - used_, " and %d more", count_ - shown_);
  return text_;
}

int32_t copied_parameter(const ModelDesc& desc, int copy) {
  const bool has_head = desc.head != TC_HEAD_NONE;
  if (copy == 0 && !has_head) return -1;
  for (const char* table : kSecondCopies[copy].tables) {
    const ParamDesc* parameter = table ? find_parameter(desc, table) : nullptr;
    if (parameter) return static_cast<int32_t>(parameter - desc.params);
  }
  return -1;
}

WeightTable::~WeightTable() {
  allocator_.release(architecture_);
  allocator_.release(tables_);
}

int64_t WeightTable::slot_count() const { return 3 * int64_t{count_} + kSecondCopyCount; }

tc_status WeightTable::allocate() {
  const int64_t slots = slot_count();
  const int64_t bytes = slots * static_cast<int64_t>(sizeof(Slot) + sizeof(int32_t)) + count_ * int64_t{4};
  const tc_status status = allocator_.allocate(tables_, bytes, "the table of tensors", message_);
  if (status != TC_OK) return status;
  slots_ = reinterpret_cast<Slot*>(tables_.data);
  by_offset_ = reinterpret_cast<int32_t*>(slots_ + slots);
  by_name_ = by_offset_ + slots;
  for (int64_t i = 0; i < slots; ++i) slots_[i] = {-1, -1, StoredF64};
  for (int32_t p = 0; p < count_; ++p) by_name_[p] = p;
  sort(by_name_, count_,
       [&](int32_t a, int32_t b) { return strcmp(desc_.params[a].name, desc_.params[b].name) < 0; });
  return TC_OK;
}

int32_t WeightTable::number_of(JsonString name) const {
  int32_t low = 0, high = count_;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const int order = compare(name, desc_.params[by_name_[middle]].name);
    if (order == 0) return by_name_[middle];
    (order < 0 ? high : low) = order < 0 ? middle : middle + 1;
  }
  return -1;
}

/// -1: a name that this model does not know.
int64_t WeightTable::slot_of(JsonString name, int32_t& parameter) const {
  parameter = number_of(name);
  if (parameter >= 0) return parameter;
  for (int which = 0; which < 2; ++which) {
    const size_t length = strlen(kMomentPrefixes[which]);
    if (static_cast<size_t>(name.end - name.begin) < length ||
        memcmp(name.begin, kMomentPrefixes[which], length) != 0)
      continue;
    parameter = number_of({name.begin + length, name.end});
    return parameter < 0 ? -1 : (1 + which) * int64_t{count_} + parameter;
  }
  for (int copy = 0; copy < kSecondCopyCount; ++copy) {
    if (!equal(name, kSecondCopies[copy].name)) continue;
    parameter = copied_parameter(desc_, copy);
    return parameter < 0 ? -1 : 3 * int64_t{count_} + copy;
  }
  return -1;
}

const char* WeightTable::slot_name(int64_t slot, char* buffer, size_t size) const {
  if (slot >= 3 * int64_t{count_}) return kSecondCopies[slot - 3 * int64_t{count_}].name;
  const int64_t block = slot / count_;
  snprintf(buffer, size, "%s%s", block == 0 ? "" : kMomentPrefixes[block - 1],
           desc_.params[slot % count_].name);
  return buffer;
}

// -- the header
// ----------------------------------------------------------------------------------------------------------

tc_status WeightTable::take_state(int which, const JsonString& value) {
  char text[24];
  const size_t length = copy(value, text, sizeof text);
  char* end = text;
  errno = 0;
  const bool digits = length > 0 && length < sizeof text && strspn(text, "0123456789") == length;
  if (digits) state_[which] = strtoull(text, &end, 10);
  if (!digits || errno != 0) {
    return message_.fail(TC_E_FORMAT,
                         "\"%s\" in \"__metadata__\" is \"%s\", expected an integer of 0 to 2^64 - 1",
                         kStateNames[which], printable(value).text);
  }
  ++states_;
  return TC_OK;
}

tc_status WeightTable::take_metadata(const JsonString& key, const JsonString& value) {
  for (int which = 0; which < 3; ++which) {
    if (equal(key, kStateNames[which])) return take_state(which, value);
  }
  if (equal(key, "architecture_hash")) {
    copy(value, hash_, sizeof hash_);
  }
  if (!equal(key, "architecture")) return TC_OK;
  const size_t bytes = copy(value, nullptr, 0) + 1;
  if (bytes > kMostArchitecture) {
    return message_.fail(TC_E_FORMAT, "\"architecture\" in \"__metadata__\" has more than %zu bytes",
                         kMostArchitecture);
  }
  const tc_status status =
      allocator_.allocate(architecture_, static_cast<int64_t>(bytes), "the architecture", message_);
  if (status == TC_OK) copy(value, architecture_.data, bytes);
  return status;
}

void WeightTable::check_shape(const StoredTensor& tensor, const ParamDesc& parameter) {
  bool fits = tensor.rank == parameter.rank;
  for (int32_t i = 0; fits && i < parameter.rank; ++i) fits = tensor.shape[i] == parameter.shape[i];
  if (fits || misfit_.text[0]) return;
  misfit_.fail(TC_E_FORMAT, "tensor \"%s\" has shape %s, this model's has %s", printable(tensor.name).text,
               shape_text(tensor.rank, tensor.shape).text, shape_text(parameter.rank, parameter.shape).text);
}

tc_status WeightTable::take_tensor(const StoredTensor& tensor) {
  int32_t parameter = -1;
  const int64_t number = slot_of(tensor.name, parameter);
  if (number < 0) {
    unknown_.add(tensor.name);
    return TC_OK;
  }
  Slot& slot = slots_[number];
  if (slot.begin >= 0) {
    return message_.fail(TC_E_FORMAT, "tensor \"%s\" stands twice in the header",
                         printable(tensor.name).text);
  }
  slot = {tensor.begin, tensor.end, tensor.type};
  has_moments_ |= number >= count_ && number < 3 * int64_t{count_};
  check_shape(tensor, desc_.params[parameter]);
  return TC_OK;
}

tc_status WeightTable::read_length(const MappedFile& file) {
  file_bytes_ = file.bytes();
  if (file_bytes_ < kLengthBytes) {
    return message_.fail(TC_E_FORMAT, "it has %lld bytes, expected at least the 8 of the header's length",
                         Long{file_bytes_});
  }
  if (file.prefetch(0, kLengthBytes) != 0) return message_.fail(TC_E_FILE, "its first bytes cannot be read");
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(file.data()[i]);
  if (length > static_cast<uint64_t>(kMostHeaderBytes)) {
    return message_.fail(TC_E_FORMAT,
                         "its first 8 bytes say that the header has %llu bytes, expected at most %lld",
                         static_cast<unsigned long long>(length), Long{kMostHeaderBytes});
  }
  data_begin_ = kLengthBytes + static_cast<int64_t>(length);
  if (data_begin_ > file_bytes_) {
    return message_.fail(TC_E_FORMAT, "the header should end at byte %lld, but the file has %lld",
                         Long{data_begin_}, Long{file_bytes_});
  }
  if (file.prefetch(0, data_begin_) != 0) return message_.fail(TC_E_FILE, "its header cannot be read");
  return TC_OK;
}

tc_status WeightTable::read(const MappedFile& file) {
  tc_status status = allocate();
  if (status == TC_OK) status = read_length(file);
  if (status != TC_OK) return status;
  HeaderReader reader(file.data() + kLengthBytes, data_begin_ - kLengthBytes, file_bytes_ - data_begin_,
                      message_);
  for (;;) {
    HeaderReader::Entry entry;
    status = reader.next(entry);
    if (status == TC_OK && entry.kind == HeaderReader::Metadata)
      status = take_metadata(entry.key, entry.value);
    if (status == TC_OK && entry.kind == HeaderReader::Tensor) status = take_tensor(entry.tensor);
    if (status != TC_OK || entry.kind == HeaderReader::End) return status;
  }
}

// -- checks
// ----------------------------------------------------------------------------------------------------------

tc_status WeightTable::check_names() {
  if (misfit_.text[0]) {
    message_ = misfit_;
    return TC_E_FORMAT;
  }
  NameList missing;
  for (int32_t p = 0; p < count_; ++p) {
    if (slots_[p].begin < 0) missing.add(desc_.params[p].name);
  }
  const int lacks = missing.count(), extra = unknown_.count();
  if (lacks && extra) {
    return message_.fail(TC_E_FORMAT,
                         "it lacks %d of this model's tensors%s; and has %d that this model has not%s", lacks,
                         missing.text(), extra, unknown_.text());
  }
  if (lacks)
    return message_.fail(TC_E_FORMAT, "it lacks %d of this model's tensors%s", lacks, missing.text());
  if (extra)
    return message_.fail(TC_E_FORMAT, "it has %d tensors that this model has not%s", extra, unknown_.text());
  return TC_OK;
}

/// The tensors lie one after the other: no gap, nothing shared.
tc_status WeightTable::check_layout() {
  int64_t stored = 0;
  for (int64_t i = 0; i < slot_count(); ++i) {
    if (slots_[i].begin >= 0) by_offset_[stored++] = static_cast<int32_t>(i);
  }
  sort(by_offset_, stored, [&](int32_t a, int32_t b) {
    const Slot &first = slots_[a], &second = slots_[b];
    return first.begin != second.begin ? first.begin < second.begin : first.end < second.end;
  });
  int64_t end = 0;
  char name[200], before[200];
  for (int64_t i = 0; i < stored; ++i) {
    const Slot& slot = slots_[by_offset_[i]];
    const char* const this_name = slot_name(by_offset_[i], name, sizeof name);
    if (slot.begin < end) {
      return message_.fail(TC_E_FORMAT, "tensor \"%s\" begins at %lld, inside \"%s\", which ends at %lld",
                           this_name, Long{slot.begin}, slot_name(by_offset_[i - 1], before, sizeof before),
                           Long{end});
    }
    if (slot.begin > end) {
      return message_.fail(TC_E_FORMAT, "no tensor has the bytes %lld to %lld, before \"%s\"", Long{end},
                           Long{slot.begin}, this_name);
    }
    end = slot.end;
  }
  const int64_t data = file_bytes_ - data_begin_;
  if (end == data) return TC_OK;
  return message_.fail(TC_E_FORMAT,
                       "the tensors end at byte %lld behind the header, but %lld bytes follow it", Long{end},
                       Long{data});
}

tc_status WeightTable::check_moments() {
  if (states_ != 0 && states_ != 3) {
    return message_.fail(TC_E_FORMAT,
                         "\"__metadata__\" has some of seed, call and step_count, expected all or none");
  }
  if (has_moments_ && states_ == 0) {
    return message_.fail(TC_E_FORMAT, "it has an optimizer's moments, but no step_count in \"__metadata__\"");
  }
  for (int32_t p = 0; p < count_; ++p) {
    const bool first = moment(0, p).begin >= 0, second = moment(1, p).begin >= 0;
    if (first != second) {
      return message_.fail(TC_E_FORMAT, "it has %s%s, but not %s%s", kMomentPrefixes[!first],
                           desc_.params[p].name, kMomentPrefixes[first], desc_.params[p].name);
    }
  }
  return TC_OK;
}

tc_status WeightTable::check() {
  tc_status status = check_names();
  if (status == TC_OK) status = check_layout();
  return status == TC_OK ? check_moments() : status;
}

}  // namespace tc
