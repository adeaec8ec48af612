// Which attributes each operation carries, and of what type: the table that the verifier holds nodes against.
#pragma once

#include <string>
#include <vector>

#include "ir/attributes.h"
#include "ir/op.h"

namespace tfc::ir {

struct AttributeRule {
  std::string key;
  size_t type;  // index into Attribute's alternatives
  bool required;
};

/// The rules of an operation, sorted by key.
const std::vector<AttributeRule>& attribute_rules(OpKind kind);

/// "" when the attributes fit the operation; else what is wrong.
std::string check_attributes(OpKind kind, const Attributes& attributes);

}  // namespace tfc::ir
