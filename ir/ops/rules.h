// What the rules in this folder share: checks of operand types for shape rules, access to operands for the
// interpreter's rules.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "ir/check.h"
#include "ir/gradient.h"
#include "ir/interpreter.h"
#include "ir/op.h"

namespace tfc::ir {

// ---- shape rules: each check sets the error and returns false on a misfit, so they chain with && ----

inline const Type* operand_type(const InferContext& context, uint32_t slot) {
  return slot < context.operands.size() ? context.operands[slot] : nullptr;
}

inline bool fail(InferContext& context, std::string why) {
  context.error = std::move(why);
  return false;
}

/// The operand is there, of that element type, and has at least `rank` dimensions.
inline bool need(InferContext& context, uint32_t slot, const char* name, DType dtype, int64_t least_rank,
                 int64_t most_rank = 8) {
  const Type* type = operand_type(context, slot);
  if (type == nullptr) return fail(context, std::string("operand ") + name + " is missing");
  if (type->dtype == dtype && type->rank() >= least_rank && type->rank() <= most_rank) return true;
  std::string expected = std::string(dtype_name(dtype)) + " of rank " + std::to_string(least_rank);
  if (most_rank != least_rank) expected += " or more";
  return fail(context, std::string(name) + " is " + type->text() + ", expected " + expected);
}

/// The operand is there and has exactly that type.
inline bool need_type(InferContext& context, uint32_t slot, const char* name, const Type& expected) {
  const Type* type = operand_type(context, slot);
  if (type == nullptr) return fail(context, std::string("operand ") + name + " is missing");
  if (*type == expected) return true;
  return fail(context, std::string(name) + " is " + type->text() + ", expected " + expected.text());
}

/// The same for an operand that may be absent.
inline bool allow_type(InferContext& context, uint32_t slot, const char* name, const Type& expected) {
  return operand_type(context, slot) == nullptr || need_type(context, slot, name, expected);
}

/// An integer attribute of at least 1.
inline bool need_positive(InferContext& context, const char* key) {
  const int64_t value = context.attributes.integer(key);
  return value > 0 || fail(context, std::string("attribute ") + key + " is " + std::to_string(value) +
                                        ", expected at least 1");
}

/// A real attribute from 0 to 1.
bool need_probability(InferContext& context, const char* key);

inline Type without_last(Type type) {
  type.shape.pop_back();
  return type;
}

inline Type with_last(Type type, Dim last) {
  type.shape.back() = std::move(last);
  return type;
}

inline Type with_dtype(Type type, DType dtype) {
  type.dtype = dtype;
  return type;
}

inline Type scalar_f64() { return Type{DType::F64, {}}; }

// ---- interpreter rules ----

/// The operand; null when absent.
inline const Tensor* operand(const EvalContext& context, size_t slot) {
  return slot < context.operands.size() ? context.operands[slot] : nullptr;
}

inline const Tensor& need(const EvalContext& context, size_t slot) {
  const Tensor* tensor = operand(context, slot);
  TFC_CHECK(tensor != nullptr, "operand " + std::to_string(slot) + " is missing");
  return *tensor;
}

/// Is element `i` of an optional mask real? Without a mask all are.
inline bool is_real(const Tensor* mask, int64_t i) { return mask == nullptr || (*mask)[i] != 0; }

/// What dropout makes of a value (ir/dropout.h). key: the row's words of dropout_keys.
double dropped(double value, const double* key, uint64_t stream, int64_t column, double p);

/// exp(x - greatest) / sum of these.
inline std::vector<double> softmax(const double* row, int64_t width) {
  std::vector<double> p(row, row + width);
  double greatest = row[0], sum = 0;
  for (const double value : p) greatest = std::isnan(value) ? value : std::fmax(greatest, value);
  for (double& value : p) sum += value = std::exp(value - greatest);
  for (double& value : p) value /= sum;
  return p;
}

// ---- derivative rules ----

/// No rule here differentiates through results that exist for the backward pass alone (means, log-sums).
inline void refuse_upstream(const GradientContext& context, uint32_t first_result) {
  for (uint32_t i = first_result; i < context.node().results.size(); ++i)
    TFC_CHECK(!context.upstream(i).valid(),
              "a gradient flows into result " + std::to_string(i) + " of %" + context.node().name);
}

inline const Type& type_of(GradientContext& context, Value value) { return context.graph().type(value); }

/// An operand of the node, if it has that many.
inline Value optional_operand(const GradientContext& context, uint32_t slot) {
  return slot < context.operand_count() ? context.operand(slot) : Value{};
}

}  // namespace tfc::ir
