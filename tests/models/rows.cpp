#include "models/rows.h"

#include <algorithm>
#include <cmath>

namespace tfc::models {
namespace {

constexpr double kWildId = 2147483647;

bool is_source(const std::string& name) { return name == "memory" || name.starts_with("src"); }

bool is_mask(const std::string& name) { return name == "mask" || name == "src_mask"; }

bool is_of_head(const std::string& name) {
  return name.starts_with("grad_output") || name.starts_with("targets") || name.starts_with("weights");
}

double never_read(const ir::Tensor& tensor, int64_t position) {
  if (tensor.dtype == ir::DType::U8) return 0;
  if (tensor.dtype == ir::DType::I32) return position % 2 ? -1 : kWildId;
  return std::nan("");
}

}  // namespace

tools::Inputs select(const tools::Inputs& inputs, const std::vector<int64_t>& rows, int64_t T, int64_t S) {
  tools::Inputs result;
  for (const auto& [name, tensor] : inputs) {
    if (tensor.rank() == 0 || name.starts_with("grad_output")) continue;
    std::vector<int64_t> shape = tensor.shape;
    shape[0] = static_cast<int64_t>(rows.size());
    if (shape.size() > 1) shape[1] = is_source(name) ? S : T;
    ir::Tensor part(tensor.dtype, shape);
    const int64_t old_row = tensor.elements() / tensor.shape[0], new_row = part.elements() / shape[0];
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int64_t i = 0; i < new_row; ++i) {
        part[static_cast<int64_t>(r) * new_row + i] =
            i < old_row ? tensor[rows[r] * old_row + i] : never_read(tensor, i);
      }
    }
    result[name] = std::move(part);
  }
  return result;
}

void set_mask(tools::Inputs& inputs, const std::string& name, const std::vector<int64_t>& lengths) {
  const auto mask = inputs.find(name);
  if (mask == inputs.end()) return;
  for (int64_t b = 0; b < mask->second.rows(); ++b) {
    double* row = mask->second.row(b);
    for (int64_t t = 0; t < mask->second.width(); ++t) row[t] = t < lengths[static_cast<size_t>(b)];
  }
}

void poison_masked(tools::Inputs& inputs) {
  for (auto& [name, tensor] : inputs) {
    const auto mask = inputs.find(is_source(name) ? "src_mask" : "mask");
    if (is_mask(name) || is_of_head(name) || tensor.rank() < 2 || mask == inputs.end()) continue;
    const int64_t width = tensor.elements() / mask->second.elements();
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (mask->second[i / width] == 0) tensor[i] = never_read(tensor, i);
    }
  }
}

Bytes tokens_of(const Bytes& array, int64_t B, int64_t b, int64_t count, int64_t T) {
  const auto row = static_cast<std::ptrdiff_t>(array.size()) / B;
  const auto begin = array.begin() + row * b;
  return {begin, begin + row / T * count};
}

}  // namespace tfc::models
