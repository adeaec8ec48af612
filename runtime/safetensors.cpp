#include "runtime/safetensors.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/memory.h"

namespace tc {

namespace {

using Long = long long;

constexpr struct {
  const char* name;
  int64_t bytes;
} kTypes[StoredTypes] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}};

}  // namespace

int64_t stored_bytes(StoredType type) { return kTypes[type].bytes; }
const char* stored_name(StoredType type) { return kTypes[type].name; }

ShapeText shape_text(int32_t rank, const int64_t* shape) {
  ShapeText result;
  size_t length = static_cast<size_t>(snprintf(result.text, sizeof result.text, "["));
  for (int32_t i = 0; i < rank && i < kMostRank && length < sizeof result.text; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    length += static_cast<size_t>(
        snprintf(result.text + length, sizeof result.text - length, "%s%lld", comma, Long{shape[i]}));
  }
  if (length < sizeof result.text) {
    snprintf(result.text + length, sizeof result.text - length, rank > kMostRank ? ",...]" : "]");
  }
  return result;
}

tc_status HeaderReader::malformed() {
  const JsonProblem& problem = reader_.problem();
  const Long at{problem.at + kLengthBytes};
  if (!problem.found[0]) {
    return message_.fail(TC_E_FORMAT, "byte %lld, in the header: %s", at, problem.expected);
  }
  return message_.fail(TC_E_FORMAT, "byte %lld, in the header: expected %s, found %s", at, problem.expected,
                       problem.found);
}

tc_status HeaderReader::refused(const StoredTensor& tensor, const char* why, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, why);
  vsnprintf(text, sizeof text, why, arguments);
  va_end(arguments);
  return message_.fail(TC_E_FORMAT, "tensor \"%s\" %s", printable(tensor.name).text, text);
}

tc_status HeaderReader::next(Entry& entry) {
  bool more = false;
  if (first_ && !reader_.begin_object()) return malformed();
  if (in_metadata_) {
    const tc_status status = next_metadata(entry, more);
    if (status != TC_OK || more) return status;
    in_metadata_ = false;
  }
  JsonString name;
  if (!reader_.next_member(first_, name, more)) return malformed();
  first_ = false;
  if (!more) {
    entry.kind = End;
    return reader_.finish() ? TC_OK : malformed();
  }
  if (!equal(name, "__metadata__")) {
    entry.kind = Tensor;
    entry.tensor = StoredTensor{name, StoredTypes, -1, {}, -1, -1};
    return tensor(entry.tensor);
  }
  if (had_metadata_) {
    reader_.refuse("a second \"__metadata__\"");
    return malformed();
  }
  had_metadata_ = in_metadata_ = true;
  if (!reader_.begin_object()) return malformed();
  return next(entry);
}

tc_status HeaderReader::next_metadata(Entry& entry, bool& more) {
  if (!reader_.next_member(metadata_count_ == 0, entry.key, more)) return malformed();
  if (!more) return TC_OK;
  entry.kind = Metadata;
  for (int i = 0; i < metadata_count_; ++i) {
    if (!equal(metadata_keys_[i], entry.key)) continue;
    return message_.fail(TC_E_FORMAT, "\"%s\" stands twice in \"__metadata__\"", printable(entry.key).text);
  }
  if (metadata_count_ == kMostMetadata) {
    reader_.refuse("\"__metadata__\" has more than 256 entries");
    return malformed();
  }
  metadata_keys_[metadata_count_++] = entry.key;
  return reader_.string(entry.value, "a string, as all of \"__metadata__\"") ? TC_OK : malformed();
}

bool HeaderReader::dtype(StoredTensor& tensor) {
  if (!reader_.string(type_text_)) return false;
  for (int type = 0; type < StoredTypes; ++type) {
    if (equal(type_text_, kTypes[type].name)) tensor.type = static_cast<StoredType>(type);
  }
  return true;
}

bool HeaderReader::shape(StoredTensor& tensor) {
  if (!reader_.begin_array()) return false;
  tensor.rank = 0;
  elements_ = 1;
  bool empty = false;
  for (bool first = true;; first = false) {
    bool more = false;
    int64_t size = 0;
    if (!reader_.next_element(first, more)) return false;
    if (!more) break;
    if (!reader_.natural(size)) return false;
    if (tensor.rank < kMostRank) tensor.shape[tensor.rank] = size;
    ++tensor.rank;
    empty |= size == 0;
    elements_ = times(elements_, size > 0 ? size : 1);
  }
  if (empty) elements_ = 0;
  return true;
}

bool HeaderReader::offsets(StoredTensor& tensor) {
  bool more = false;
  return reader_.begin_array() && reader_.next_element(true, more) && reader_.natural(tensor.begin) &&
         reader_.next_element(false, more) &&
         (more || reader_.refuse("data_offsets has one number, expected two")) &&
         reader_.natural(tensor.end) && reader_.next_element(false, more) &&
         (!more || reader_.refuse("data_offsets has more than two numbers"));
}

tc_status HeaderReader::tensor(StoredTensor& tensor) {
  static constexpr const char* kKeys[] = {"dtype", "shape", "data_offsets"};
  bool had[3] = {};
  if (!reader_.begin_object()) return malformed();
  for (bool first = true;; first = false) {
    JsonString key;
    bool more = false;
    if (!reader_.next_member(first, key, more)) return malformed();
    if (!more) break;
    int which = 0;
    while (which < 3 && !equal(key, kKeys[which])) ++which;
    if (which == 3) {
      return refused(tensor, "has the key \"%s\", expected dtype, shape and data_offsets alone",
                     printable(key).text);
    }
    if (had[which]) return refused(tensor, "has %s twice", kKeys[which]);
    had[which] = true;
    const bool read = which == 0 ? dtype(tensor) : which == 1 ? shape(tensor) : offsets(tensor);
    if (!read) return malformed();
  }
  for (int which = 0; which < 3; ++which) {
    if (!had[which]) return refused(tensor, "has no %s", kKeys[which]);
  }
  return check(tensor);
}

tc_status HeaderReader::check(const StoredTensor& tensor) {
  if (tensor.type == StoredTypes) {
    return refused(tensor, "has dtype \"%s\", expected F64, F32, F16 or BF16", printable(type_text_).text);
  }
  const ShapeText shape = shape_text(tensor.rank, tensor.shape);
  const int64_t bytes = times(elements_, stored_bytes(tensor.type));
  if (bytes == kMost) return refused(tensor, "has shape %s: more bytes than there can be", shape.text);
  if (tensor.begin > tensor.end) {
    return refused(tensor, "begins at %lld and ends before it, at %lld", Long{tensor.begin},
                   Long{tensor.end});
  }
  if (tensor.end > data_bytes_) {
    return refused(tensor, "ends at %lld, but only %lld bytes follow the header", Long{tensor.end},
                   Long{data_bytes_});
  }
  if (tensor.end - tensor.begin != bytes) {
    return refused(tensor, "has %lld bytes at %lld to %lld, but %s of shape %s takes %lld",
                   Long{tensor.end - tensor.begin}, Long{tensor.begin}, Long{tensor.end},
                   stored_name(tensor.type), shape.text, Long{bytes});
  }
  return TC_OK;
}

}  // namespace tc
