// Kinds of operations and what the table says of each; the declarations of the per-op functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attributes.h"
#include "ir/diagnostic.h"
#include "ir/type.h"

namespace tfc::ir {

enum class OpKind : uint8_t {
#define TFC_LEAF(name, text, least, most, results, padding) name,
#define TFC_BLOCK(name, text, least, most, results) name,
#define TFC_OP(name, text, least, most, results, padding) name,
#define TFC_GRAD_OP(name, text, least, most, results, padding) name,
#define TFC_FUSED(name, text, least, most, results) name,
#include "ir/ops.def"
};

enum class OpClass : uint8_t { Leaf, Block, Primitive, GradientPrimitive, Fused };

/// What rows that a mask calls padding are to an operation. A fused node is what its body's operations are.
enum class PaddedRows : uint8_t {
  Apart,  // each row is made from the same row alone, or the mask is asked: what stands in padding goes nowhere else
  Zeros,  // of a backward pass: a row whose gradient is zero gives nothing, whatever finite numbers the forward left
  Read,   // rows are read as they are
};

struct OpInfo {
  OpKind kind;
  std::string_view text;  // as in dumps: "layer_norm"
  OpClass op_class;
  int least_operands, most_operands;  // most -1: any number
  int results;                        // -1: depends on attributes or body
  PaddedRows padding;
};

const OpInfo& info(OpKind kind);
const std::vector<OpInfo>& all_ops();               // in the table's order
const OpInfo* op_from_text(std::string_view text);  // null when there is none

inline bool is_primitive(OpKind kind) {
  return info(kind).op_class == OpClass::Primitive || info(kind).op_class == OpClass::GradientPrimitive;
}

class Graph;
struct Module;
struct Tensor;
class GradientContext;  // ir/gradient.h

/// What a shape rule sees. An absent operand has a null type.
struct InferContext {
  std::span<const Type* const> operands;
  const Attributes& attributes;
  DType real;                 // the module's real type
  std::vector<Type> results;  // to be filled
  std::string error;          // to be set instead, when operands or attributes do not fit
};

/// What an interpreter rule sees: concrete tensors (ir/interpreter.h); absent operands are null, results are
/// allocated with their shapes and filled with zeros.
struct EvalContext {
  std::span<const Tensor* const> operands;
  std::span<Tensor> results;
  const Attributes& attributes;
  const Module* module = nullptr;  // adamw alone asks it where each parameter lies in the block
};

#define TFC_OP(name, text, least, most, results, padding) \
  void infer_##name(InferContext&);                       \
  void eval_##name(const EvalContext&);                   \
  void gradient_##name(GradientContext&);
#define TFC_GRAD_OP(name, text, least, most, results, padding) \
  void infer_##name(InferContext&);                            \
  void eval_##name(const EvalContext&);
#include "ir/ops.def"

/// Shape rule of a primitive by kind (generated dispatch). Sets context.error for a kind without a rule.
void infer(OpKind kind, InferContext& context);
void evaluate(OpKind kind, const EvalContext& context);

}  // namespace tfc::ir
