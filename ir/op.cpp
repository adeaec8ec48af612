#include "ir/op.h"

#include <unordered_map>

#include "ir/check.h"
#include "ir/gradient.h"

namespace tfc::ir {
namespace {

constexpr OpInfo kOps[] = {
#define TFC_LEAF(name, text, least, most, results, padding) \
  {OpKind::name, text, OpClass::Leaf, least, most, results, PaddedRows::padding},
#define TFC_BLOCK(name, text, least, most, results) \
  {OpKind::name, text, OpClass::Block, least, most, results, PaddedRows::Read},
#define TFC_OP(name, text, least, most, results, padding) \
  {OpKind::name, text, OpClass::Primitive, least, most, results, PaddedRows::padding},
#define TFC_GRAD_OP(name, text, least, most, results, padding) \
  {OpKind::name, text, OpClass::GradientPrimitive, least, most, results, PaddedRows::padding},
#define TFC_FUSED(name, text, least, most, results) \
  {OpKind::name, text, OpClass::Fused, least, most, results, PaddedRows::Read},
#include "ir/ops.def"
};

}  // namespace

// The enumerators count up in the order of ops.def's lines, as the rows of kOps do.
const OpInfo& info(OpKind kind) {
  const size_t index = static_cast<size_t>(kind);
  TFC_CHECK(index < std::size(kOps), "operation number " + std::to_string(index) + " is not in the table");
  return kOps[index];
}

const std::vector<OpInfo>& all_ops() {
  static const std::vector<OpInfo> list(std::begin(kOps), std::end(kOps));
  return list;
}

const OpInfo* op_from_text(std::string_view text) {
  static const auto by_text = [] {
    std::unordered_map<std::string_view, const OpInfo*> map;
    for (const OpInfo& op : kOps) map.emplace(op.text, &op);
    return map;
  }();
  const auto found = by_text.find(text);
  return found == by_text.end() ? nullptr : found->second;
}

void infer(OpKind kind, InferContext& context) {
  switch (kind) {
#define TFC_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                      \
    return infer_##name(context);
#define TFC_GRAD_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                           \
    return infer_##name(context);
#include "ir/ops.def"
    default:
      context.error = "no shape rule for " + std::string(info(kind).text);
  }
}

void evaluate(OpKind kind, const EvalContext& context) {
  switch (kind) {
#define TFC_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                      \
    return eval_##name(context);
#define TFC_GRAD_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                           \
    return eval_##name(context);
#include "ir/ops.def"
    default:
      compiler_fault("the interpreter has no rule for " + std::string(info(kind).text));
  }
}

void gradient(OpKind kind, GradientContext& context) {
  switch (kind) {
#define TFC_OP(name, text, least, most, results, padding) \
  case OpKind::name:                                      \
    return gradient_##name(context);
#include "ir/ops.def"
    default:
      compiler_fault("no derivative rule for " + std::string(info(kind).text));
  }
}

}  // namespace tfc::ir
