// The safetensors format: eight bytes with the header's length (little-endian), the header as JSON, then the
// tensors' bytes without a gap. The header gives each tensor's dtype, shape, and where its bytes begin and
// end, counted from the header's end; "__metadata__" holds texts by name.
#pragma once

#include "runtime/json.h"
#include "runtime/message.h"

namespace tc {

enum StoredType : int32_t { StoredF64, StoredF32, StoredF16, StoredBF16, StoredTypes };

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMostHeaderBytes = int64_t{32} << 20;
constexpr int kMostRank = 4;  // of what a model has

int64_t stored_bytes(StoredType type);
const char* stored_name(StoredType type);  // "BF16"

/// A tensor as a header has it; its bytes were compared with its shape.
struct StoredTensor {
  JsonString name;
  StoredType type;
  int32_t rank;              // may be larger than kMostRank
  int64_t shape[kMostRank];  // the first dimensions
  int64_t begin, end;        // bytes, from the header's end
};

/// "[2,3]", cut short where it is long.
struct ShapeText {
  char text[80];
};
ShapeText shape_text(int32_t rank, const int64_t* shape);

/// Goes through a header, entry after entry.
class HeaderReader {
 public:
  enum Kind { Metadata, Tensor, End };
  struct Entry {
    Kind kind;
    JsonString key, value;  // Metadata
    StoredTensor tensor;    // Tensor
  };

  /// `data_bytes`: what follows the header in the file.
  HeaderReader(const char* header, int64_t bytes, int64_t data_bytes, Message& message)
      : reader_(header, bytes), data_bytes_(data_bytes), message_(message) {}

  /// TC_E_FORMAT with a message where the header is not what it should be.
  tc_status next(Entry& entry);

 private:
  tc_status malformed();
  tc_status refused(const StoredTensor& tensor, const char* why, ...) __attribute__((format(printf, 3, 4)));
  tc_status next_metadata(Entry& entry, bool& more);
  tc_status tensor(StoredTensor& tensor);
  tc_status check(const StoredTensor& tensor);
  bool dtype(StoredTensor& tensor);
  bool shape(StoredTensor& tensor);
  bool offsets(StoredTensor& tensor);

  static constexpr int kMostMetadata = 256;

  JsonReader reader_;
  int64_t data_bytes_;
  Message& message_;
  bool first_ = true;  // of the header's object
  bool in_metadata_ = false, had_metadata_ = false;
  int metadata_count_ = 0;
  JsonString metadata_keys_[kMostMetadata];
  // Of the tensor being read.
  JsonString type_text_;
  int64_t elements_ = 0;
};

}  // namespace tc
