// Types of values: an element type and a symbolic shape, written f32[B,T,768].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dim.h"

namespace tfc::ir {

/// F32 or F64 is the precision of a module; scalars of losses and norms are F64 in both. I32 holds ids and
/// lengths, U8 masks (1: a real token).
enum class DType : uint8_t { F32, F64, I32, U8 };
std::string_view dtype_name(DType dtype);  // "f32"
std::optional<DType> dtype_from_name(std::string_view name);
int64_t dtype_bytes(DType dtype);

using Shape = std::vector<Dim>;

struct Type {
  DType dtype = DType::F32;
  Shape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  Dim elements() const;  // product of all dimensions; 1 for a scalar
  Dim rows() const;      // product of all but the last; 1 for rank 0 and 1
  Dim width() const;     // the last; 1 for a scalar
  Dim bytes() const;
  std::string text() const;
  void append_text(std::string& to) const;
  static std::optional<Type> parse(std::string_view text);
  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace tfc::ir
