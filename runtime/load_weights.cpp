// Reading a weight file: all of it is checked, and every byte was read once, before the first number changes.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/convert.h"
#include "runtime/random.h"
#include "runtime/weight_table.h"

namespace tc {

namespace {

using Long = long long;

constexpr int64_t kTaskElements = 1 << 20;

class Loader {
 public:
  Loader(tc_model& model, bool strict, Message& message)
      : model_(model),
        desc_(*model.desc),
        strict_(strict),
        message_(message),
        allocator_(unlimited(model)),
        table_(*model.desc, allocator_, message) {}
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  tc_status run(const char* path);

 private:
  tc_status check_architecture();
  tc_status check_copies();
  tc_status check_readable();
  void apply();
  void apply_moments(const Executor& executor);
  void fill(const Slot& slot, const ParamDesc& parameter, char* block, const Executor& executor);

  const char* data(const Slot& slot) const { return file_.data() + table_.data_begin() + slot.begin; }

  tc_model& model_;
  const ModelDesc& desc_;
  bool strict_;
  Message& message_;
  MappedFile file_;
  Allocator allocator_;  // of tables that are gone when the call ends
  WeightTable table_;
};

tc_status Loader::check_architecture() {
  const char* const theirs = table_.architecture();
  const char* const ours = desc_.architecture;
  char hash[20];
  const char* const hashed = theirs ? theirs : ours;
  snprintf(hash, sizeof hash, "%016llx",
           static_cast<unsigned long long>(architecture_hash(hashed, strlen(hashed))));
  const bool other_hash = table_.hash() && strcmp(hash, table_.hash()) != 0;
  if (theirs && other_hash) {
    return message_.fail(TC_E_FORMAT,
                         "\"architecture_hash\" in \"__metadata__\" is not that of its \"architecture\"");
  }
  if (!strict_ || !ours[0]) return TC_OK;
  if (theirs) return compare_architectures(theirs, ours, message_);
  if (!other_hash) return TC_OK;
  return message_.fail(TC_E_FORMAT, "it is of another architecture: its hash is %.16s, this model's is %s",
                       table_.hash(), hash);
}

tc_status Loader::check_readable() {
  constexpr int64_t kPart = int64_t{64} << 20;
  for (int64_t at = table_.data_begin(); at < file_.bytes(); at += kPart) {
    const int64_t left = file_.bytes() - at, part = left < kPart ? left : kPart;
    const int error = file_.prefetch(at, part);
    if (error) {
      return message_.fail(TC_E_FILE, "bytes %lld to %lld cannot be read: %s", Long{at}, Long{at + part},
                           strerror(error));
    }
    file_.release(at, part);
  }
  return file_.unchanged() ? TC_OK : message_.fail(TC_E_FILE, "somebody changed it while it was read");
}

tc_status Loader::check_copies() {
  const FloatingPointScope scope(Denormals::Keep);
  return table_.each_copy([&](const char* name, const Slot& copy, int32_t original) {
    const ParamDesc& parameter = desc_.params[original];
    const Slot& table = table_.parameter(original);
    const int64_t at = first_difference(copy.type, data(copy), table.type, data(table), parameter.elements);
    if (at < 0) return TC_OK;
    return message_.fail(
        TC_E_FORMAT, "\"%s\" is \"%s\" itself in this model, but the file's differ, first at element %lld",
        name, parameter.name, Long{at});
  });
}

// -- the numbers
// ----------------------------------------------------------------------------------------------------------

struct Filling {
  const MappedFile* file;
  const char* source;
  int64_t offset;  // of the source, in the file
  StoredType type;
  int32_t real;
  char* target;
  int64_t elements;
};

void fill_tasks(const void* self, int64_t first, int64_t last, int) {
  const Filling& f = *static_cast<const Filling*>(self);
  const int64_t size = stored_bytes(f.type), own = f.real == TypeF64 ? 8 : 4;
  for (int64_t task = first; task < last; ++task) {
    const int64_t begin = task * kTaskElements, left = f.elements - begin;
    const int64_t count = left < kTaskElements ? left : kTaskElements;
    convert(f.type, f.source + begin * size, f.real, f.target + begin * own, count);
    f.file->release(f.offset + begin * size, count * size);
  }
}

void Loader::fill(const Slot& slot, const ParamDesc& parameter, char* block, const Executor& executor) {
  const Filling filling{&file_,
                        data(slot),
                        table_.data_begin() + slot.begin,
                        slot.type,
                        desc_.real,
                        block + parameter.offset * real_bytes(desc_),
                        parameter.elements};
  executor.run({fill_tasks, &filling}, (parameter.elements + kTaskElements - 1) / kTaskElements);
}

/// What the file has no moments of (it was frozen there, or nothing was trained yet) begins anew.
void Loader::apply_moments(const Executor& executor) {
  if (!model_.moments.data) return;
  clear(model_.moments.data, model_.moments.bytes, executor);
  for (int32_t p = 0; p < desc_.param_count; ++p) {
    const ParamDesc& parameter = desc_.params[p];
    if (parameter.frozen || table_.moment(0, p).begin < 0) continue;
    fill(table_.moment(0, p), parameter, model_.moments.data, executor);
    fill(table_.moment(1, p), parameter, second_moments(model_), executor);
  }
}

void Loader::apply() {
  Message unread;  // one thread can do it too
  const ModelThreads threads(model_, unread);
  const Executor& executor = threads.executor();
  for (int32_t p = 0; p < desc_.param_count; ++p)
    fill(table_.parameter(p), desc_.params[p], model_.parameters.data, executor);
  if (!table_.has_state()) return;
  apply_moments(executor);
  model_.state.seed = table_.state(0);
  model_.state.call = table_.state(1);
  model_.state.step_count = table_.state(2);
}

tc_status Loader::run(const char* path) {
  tc_status status = file_.open(path, message_);
  if (status != TC_OK) return status;
  status = table_.read(file_);
  if (status == TC_OK) status = check_architecture();
  if (status == TC_OK) status = table_.check();
  if (status == TC_OK) status = check_readable();
  if (status == TC_OK) status = check_copies();
  if (status == TC_OK && table_.has_moments() && desc_.entries[EntryStep].present) {
    status = need_moments(model_, executor_of(desc_, model_.options, nullptr), message_);
  }
  if (status == TC_OK) apply();
  if (status == TC_E_FORMAT || status == TC_E_FILE) {
    const Message text = message_;
    message_.fail(status, "%s: %s", PathText(path).text, text.text);
    errno = EIO;
  }
  return status;
}

}  // namespace

tc_status load_weights(tc_model& model, const char* path, bool strict, Message& message) {
  return Loader(model, strict, message).run(path);
}

}  // namespace tc
