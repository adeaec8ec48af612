#include "ir/type.h"

#include <array>

#include "ir/check.h"

namespace tfc::ir {
namespace {

struct DTypeInfo {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<DTypeInfo, 4> kDTypes = {{{"f32", 4}, {"f64", 8}, {"i32", 4}, {"u8", 1}}};

}  // namespace

std::string_view dtype_name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int64_t dtype_bytes(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bytes; }

Dim Type::elements() const {
  Dim product = 1;
  for (const Dim& dim : shape) product = product * dim;
  return product;
}

Dim Type::rows() const {
  Dim product = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) product = product * shape[i];
  return product;
}

Dim Type::width() const { return shape.empty() ? Dim(1) : shape.back(); }

Dim Type::bytes() const { return elements() * Dim(dtype_bytes(dtype)); }

void Type::append_text(std::string& to) const {
  to += dtype_name(dtype);
  to += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) to += ',';
    shape[i].append_text(to);
  }
  to += ']';
}

std::string Type::text() const {
  std::string text;
  append_text(text);
  return text;
}

std::optional<Type> Type::parse(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return std::nullopt;
  const std::optional<DType> dtype = dtype_from_name(text.substr(0, open));
  if (!dtype) return std::nullopt;
  Type type{*dtype, {}};
  const std::string_view inner = text.substr(open + 1, text.size() - open - 2);
  if (inner.empty()) return type;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= inner.size(); ++i) {
    if (i < inner.size() && inner[i] == '(') ++depth;
    if (i < inner.size() && inner[i] == ')') --depth;
    if (i < inner.size() && (inner[i] != ',' || depth != 0)) continue;
    std::optional<Dim> dim = Dim::parse(inner.substr(start, i - start));
    if (!dim) return std::nullopt;
    type.shape.push_back(std::move(*dim));
    start = i + 1;
  }
  return type;
}

}  // namespace tfc::ir
