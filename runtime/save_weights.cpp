// Writing a weight file: the header's text twice, once to know its length, then the blocks as they are.
#include <stdio.h>
#include <string.h>

#include "runtime/description.h"
#include "runtime/weights.h"

namespace tc {

namespace {

using Long = long long;

constexpr int64_t kDataAlignment = 64;

/// Counts what is written, and writes it where there is a file.
class Sink {
 public:
  explicit Sink(ReplacingFile* file) : file_(file) {}
  void bytes(const char* data, size_t count) {
    if (file_) file_->write(data, static_cast<int64_t>(count));
    written_ += static_cast<int64_t>(count);
  }
  void text(const char* text) { bytes(text, strlen(text)); }
  void number(int64_t value) {
    char digits[24];
    bytes(digits, static_cast<size_t>(snprintf(digits, sizeof digits, "%lld", Long{value})));
  }
  /// In quotes.
  void string(const char* prefix, const char* text);
  int64_t written() const { return written_; }

 private:
  void characters(const char* text);

  ReplacingFile* file_;
  int64_t written_ = 0;
};

void Sink::characters(const char* text) {
  for (; *text; ++text) {
    const unsigned char byte = static_cast<unsigned char>(*text);
    char escape[8];
    if (byte == '"' || byte == '\\') {
      snprintf(escape, sizeof escape, "\\%c", byte);
    } else if (byte == '\n') {
      snprintf(escape, sizeof escape, "\\n");
    } else if (byte < 0x20) {
      snprintf(escape, sizeof escape, "\\u%04x", byte);
    } else {
      snprintf(escape, sizeof escape, "%c", byte);
    }
    this->text(escape);
  }
}

void Sink::string(const char* prefix, const char* text) {
  bytes("\"", 1);
  characters(prefix);
  characters(text);
  bytes("\"", 1);
}

class Saver {
 public:
  Saver(const tc_model& model, bool with_optimizer)
      : model_(model), desc_(*model.desc), with_optimizer_(with_optimizer) {}

  tc_status run(const char* path, Message& message);

 private:
  void header(Sink& sink) const;
  void metadata(Sink& sink) const;
  void tensor(Sink& sink, const char* prefix, const ParamDesc& parameter, int64_t& offset) const;
  void data(ReplacingFile& file, const char* block, bool trained) const;
  bool has_moments() const { return with_optimizer_ && model_.moments.data; }

  const tc_model& model_;
  const ModelDesc& desc_;
  bool with_optimizer_;
};

void Saver::metadata(Sink& sink) const {
  const auto entry = [&](const char* key, const char* value) {
    sink.text(",");
    sink.string("", key);
    sink.text(":");
    sink.string("", value);
  };
  const auto number = [&](const char* key, const char* format, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, format, static_cast<unsigned long long>(value));
    entry(key, digits);
  };
  // "pt": named and laid out as PyTorch would have them, which is what readers of the format ask.
  sink.text("\"__metadata__\":{\"format\":\"pt\"");
  entry("name", desc_.name);
  entry("description", desc_.description);
  entry("architecture", desc_.architecture);
  number("architecture_hash", "%016llx", architecture_hash(desc_.architecture, strlen(desc_.architecture)));
  if (with_optimizer_) {
    const uint64_t values[3] = {model_.state.seed, model_.state.call, model_.state.step_count};
    for (int i = 0; i < 3; ++i) number(kStateNames[i], "%llu", values[i]);
  }
  sink.text("}");
}

void Saver::tensor(Sink& sink, const char* prefix, const ParamDesc& parameter, int64_t& offset) const {
  sink.text(",\n");
  sink.string(prefix, parameter.name);
  sink.text(desc_.real == TypeF64 ? ":{\"dtype\":\"F64\",\"shape\":[" : ":{\"dtype\":\"F32\",\"shape\":[");
  for (int32_t i = 0; i < parameter.rank; ++i) {
    if (i > 0) sink.text(",");
    sink.number(parameter.shape[i]);
  }
  sink.text("],\"data_offsets\":[");
  sink.number(offset);
  offset += parameter.elements * real_bytes(desc_);
  sink.text(",");
  sink.number(offset);
  sink.text("]}");
}

void Saver::header(Sink& sink) const {
  sink.text("{");
  metadata(sink);
  int64_t offset = 0;
  for (int32_t p = 0; p < desc_.param_count; ++p) tensor(sink, "", desc_.params[p], offset);
  for (int which = 0; which < 2 && has_moments(); ++which) {
    for (int32_t p = 0; p < desc_.param_count; ++p) {
      if (!desc_.params[p].frozen) tensor(sink, kMomentPrefixes[which], desc_.params[p], offset);
    }
  }
  sink.text("}");
  while ((kLengthBytes + sink.written()) % kDataAlignment != 0) sink.text(" ");
}

/// `trained`: a block that has no place for what is frozen.
void Saver::data(ReplacingFile& file, const char* block, bool trained) const {
  const int64_t real = real_bytes(desc_);
  for (int32_t p = 0; p < desc_.param_count; ++p) {
    const ParamDesc& parameter = desc_.params[p];
    if (!trained || !parameter.frozen) file.write(block + parameter.offset * real, parameter.elements * real);
  }
}

tc_status Saver::run(const char* path, Message& message) {
  ReplacingFile file;
  const tc_status status = file.open(path, message);
  if (status != TC_OK) return status;
  Sink counting(nullptr);
  header(counting);
  const uint64_t length = static_cast<uint64_t>(counting.written());
  unsigned char bytes[kLengthBytes];
  for (int i = 0; i < kLengthBytes; ++i) bytes[i] = static_cast<unsigned char>(length >> (8 * i));
  file.write(bytes, kLengthBytes);
  Sink writing(&file);
  header(writing);
  data(file, model_.parameters.data, false);
  if (has_moments()) {
    data(file, model_.moments.data, true);
    data(file, second_moments(model_), true);
  }
  return file.commit(message);
}

}  // namespace

tc_status save_weights(const tc_model& model, const char* path, bool with_optimizer, Message& message) {
  return Saver(model, with_optimizer).run(path, message);
}

}  // namespace tc
