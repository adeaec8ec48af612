#include "tools/call_inputs.h"

#include <algorithm>
#include <cstring>

#include "ir/check.h"
#include "tools/random.h"

namespace tfc::tools {
namespace {

int64_t row_length(Random& random, int64_t tokens) { return tokens - random.below((tokens + 2) / 3); }

ir::Tensor padding_mask(std::vector<int64_t> shape, bool padded, Random& random) {
  ir::Tensor mask(ir::DType::U8, std::move(shape));
  for (int64_t row = 0; row < mask.shape[0]; ++row) {
    const int64_t length = padded ? row_length(random, mask.width()) : mask.width();
    std::fill(mask.row(row), mask.row(row) + length, 1.0);
  }
  return mask;
}

// How many values an id input may take.
int64_t id_range(const ir::Module& module, const std::string& name) {
  const ir::Attributes& facts = module.facts;
  const int64_t vocab = facts.integer("vocab", 0);
  if (name == "src") return facts.integer("src_vocab", vocab);
  if (name == "types") return facts.integer("types", 1);
  if (name == "targets" && facts.text("head", "none") == "classifier") return facts.integer("classes", 1);
  return vocab;
}

/// Documents one after the other, positions that mostly grow by one, prefixes of up to half a row.
void fill_token_input(const ir::Module& module, const std::string& name, ir::Tensor& tensor, int64_t tokens,
                      Random& random) {
  const int64_t limit = module.facts.integer("max_seq", 0);
  if (name == "prefix") {
    for (double& value : tensor.data) value = static_cast<double>(random.below(tokens / 2 + 1));
    return;
  }
  const bool documents = name.ends_with("documents");
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    int64_t value = documents ? 0 : random.below(2);
    for (int64_t t = 0; t < tensor.width(); ++t) {
      tensor.row(row)[t] = static_cast<double>(value);
      value += documents ? random.below(4) == 0 : 1 + (random.below(4) == 0);
      if (!documents && limit > 0 && value >= limit) value = 0;
    }
  }
}

bool is_token_input(const std::string& name) {
  return name == "prefix" || name.ends_with("positions") || name.ends_with("documents");
}

ir::Tensor random_input(const ir::Module& module, const std::string& name, const ir::Type& type,
                        const ir::Point& point, bool padded, Random& random) {
  std::vector<int64_t> shape = ir::shape_at(type, point);
  if (type.dtype == ir::DType::U8) return padding_mask(std::move(shape), padded, random);
  ir::Tensor tensor(type.dtype, std::move(shape));
  if (name == "mean") {
    tensor[0] = 1;
    return tensor;
  }
  if (name == "dropout") {  // the first call of a model with seed 0
    tensor[4] = 1;
    return tensor;
  }
  if (is_token_input(name)) {
    fill_token_input(module, name, tensor, point[ir::Symbol::T], random);
    return tensor;
  }
  const bool ids = type.dtype == ir::DType::I32;
  const int64_t range = ids ? id_range(module, name) : 0;
  for (double& value : tensor.data) value = ids ? static_cast<double>(random.below(range)) : random.normal();
  if (name == "targets" && padded && tensor.elements() > 4) {
    tensor[tensor.elements() / 3] = static_cast<double>(module.facts.integer("ignore_index", -100));
  }
  // What the library computes in float32 is what the interpreter is given.
  if (type.dtype == ir::DType::F32) {
    for (double& value : tensor.data) value = static_cast<float>(value);
  }
  return tensor;
}

bool is_call_argument(const std::string& entry) {
  return entry != "step" && entry != "decode" && entry != "encode";
}

template <typename T>
void convert(const ir::Tensor& tensor, std::vector<uint8_t>& bytes) {
  bytes.resize(tensor.data.size() * sizeof(T));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    const T value = static_cast<T>(tensor.data[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

Inputs random_inputs(const ir::Module& module, const ir::Point& point, uint64_t seed, bool padded) {
  Inputs inputs;
  Random random(seed);
  for (const ir::Entry& entry : module.entries) {
    if (!is_call_argument(entry.name)) continue;
    for (const ir::NodeId id : entry.graph.nodes()) {
      const ir::Node& node = entry.graph.node(id);
      if (node.op != ir::OpKind::Input) continue;
      const std::string& name = node.attributes.text("name");
      if (!inputs.count(name))
        inputs[name] = random_input(module, name, node.results[0], point, padded, random);
    }
  }
  return inputs;
}

Inputs without_padding(Inputs inputs) {
  for (auto& [name, tensor] : inputs) {
    if (tensor.dtype == ir::DType::U8) std::fill(tensor.data.begin(), tensor.data.end(), 1.0);
  }
  return inputs;
}

Inputs half_padded(Inputs inputs) {
  for (auto& [name, tensor] : inputs) {
    if (tensor.dtype != ir::DType::U8) continue;
    const int64_t rows = tensor.rows(), width = tensor.width();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t length = std::max<int64_t>(1, width * (2 * row + 1) / (2 * rows));
      for (int64_t t = 0; t < width; ++t) tensor.row(row)[t] = t < length;
    }
  }
  return inputs;
}

Inputs with_short_prefixes(Inputs inputs) {
  if (const auto prefix = inputs.find("prefix"); prefix != inputs.end()) {
    for (double& length : prefix->second.data) length = std::min(length, 1.0);
  }
  return inputs;
}

const void* Batch::keep(const ir::Tensor& tensor, int real_bytes) {
  std::vector<uint8_t>& bytes = storage_.emplace_back();
  switch (tensor.dtype) {
    case ir::DType::I32:
      convert<int32_t>(tensor, bytes);
      break;
    case ir::DType::U8:
      convert<uint8_t>(tensor, bytes);
      break;
    case ir::DType::F32:
    case ir::DType::F64:
      real_bytes == 8 ? convert<double>(tensor, bytes) : convert<float>(tensor, bytes);
      break;
  }
  return bytes.data();
}

Batch::Batch(const tc_info& info, const Inputs& inputs, const ir::Point& point) {
  const auto given = [&](const char* name) -> const void* {
    const auto found = inputs.find(name);
    return found == inputs.end() ? nullptr : keep(found->second, info.real_bytes);
  };
  batch.size = sizeof batch;
  batch.B = point[ir::Symbol::B];
  batch.T = point[ir::Symbol::T];
  batch.S = info.kind == TC_KIND_ENCODER_DECODER ? point[ir::Symbol::S] : 0;
  batch.tokens = static_cast<const int32_t*>(given("tokens"));
  batch.x = given("x");
  batch.src = given("src");
  batch.tgt = given("tgt");
  batch.memory = given("memory");
  batch.types = static_cast<const int32_t*>(given("types"));
  batch.positions = static_cast<const int32_t*>(given("positions"));
  batch.documents = static_cast<const int32_t*>(given("documents"));
  batch.prefix = static_cast<const int32_t*>(given("prefix"));
  batch.src_positions = static_cast<const int32_t*>(given("src_positions"));
  batch.src_documents = static_cast<const int32_t*>(given("src_documents"));
  grad_output = given("grad_output");

  // Padding is on the right, so lengths say the same as masks where only those are declared.
  const auto mask = [&](const char* name, unsigned mask_bit, unsigned length_bit, const uint8_t*& masks,
                        const int32_t*& lengths) {
    const auto found = inputs.find(name);
    if (found == inputs.end()) return;
    has_mask = true;
    if (info.inputs & mask_bit) {
      masks = static_cast<const uint8_t*>(keep(found->second, info.real_bytes));
    } else if (info.inputs & length_bit) {
      ir::Tensor counts(ir::DType::I32, {found->second.shape[0]});
      for (int64_t row = 0; row < counts.elements(); ++row) {
        for (int64_t t = 0; t < found->second.width(); ++t) counts[row] += found->second.row(row)[t];
      }
      lengths = static_cast<const int32_t*>(keep(counts, info.real_bytes));
    }
  };
  mask("mask", TC_INPUT_MASK, TC_INPUT_LENGTHS, batch.mask, batch.lengths);
  mask("src_mask", TC_INPUT_SRC_MASK, TC_INPUT_SRC_LENGTHS, batch.src_mask, batch.src_lengths);
  if (inputs.count("targets")) {
    targets_ = given("targets");
    batch.targets = &targets_;
  }
}

tc_batch Batch::slice(const tc_info& info, int64_t first, int64_t count) {
  tc_batch part{};
  part.size = sizeof part;
  part.B = batch.B;
  part.T = count;
  const auto columns = [&](const void* whole, int64_t element_bytes) -> const void* {
    if (!whole) return nullptr;
    std::vector<uint8_t>& bytes = storage_.emplace_back(static_cast<size_t>(batch.B * count * element_bytes));
    for (int64_t row = 0; row < batch.B; ++row) {
      std::memcpy(bytes.data() + row * count * element_bytes,
                  static_cast<const uint8_t*>(whole) + (row * batch.T + first) * element_bytes,
                  static_cast<size_t>(count * element_bytes));
    }
    return bytes.data();
  };
  const int64_t hidden = info.d_model * info.real_bytes;
  part.tokens = static_cast<const int32_t*>(columns(batch.tokens, 4));
  part.x = columns(batch.x, hidden);
  part.tgt = columns(batch.tgt, info.inputs & TC_INPUT_TGT_IS_FLOAT ? hidden : 4);
  part.types = static_cast<const int32_t*>(columns(batch.types, 4));
  part.positions = static_cast<const int32_t*>(columns(batch.positions, 4));
  part.documents = static_cast<const int32_t*>(columns(batch.documents, 4));
  if (first == 0) part.prefix = batch.prefix;
  return part;
}

}  // namespace tfc::tools
