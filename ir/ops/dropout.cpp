// Dropout (Srivastava et al. 2014), by numbers that are drawn again wherever they are needed: ir/dropout.h.
#include "ir/dropout.h"
#include "ir/ops/rules.h"

namespace tfc::ir {

// dropout_keys (call i32[5]) {batch, tokens} -> i32[B,T,3]
void infer_DropoutKeys(InferContext& c) {
  if (!need_type(c, 0, "call", {DType::I32, {Dim(kDropoutWords)}})) return;
  c.results = {{DType::I32, {c.attributes.dim("batch"), c.attributes.dim("tokens"), Dim(3)}}};
}

static uint64_t joined(const Tensor& words, int64_t low) {
  const auto half = [&](int64_t i) { return static_cast<uint32_t>(static_cast<int64_t>(words[i])); };
  return half(low) | uint64_t{half(low + 1)} << 32;
}

void eval_DropoutKeys(const EvalContext& c) {
  const Tensor& call = need(c, 0);
  Tensor& keys = c.results[0];
  const auto word = [](uint32_t bits) { return static_cast<double>(static_cast<int32_t>(bits)); };
  for (int64_t b = 0; b < keys.shape[0]; ++b)
    for (int64_t t = 0; t < keys.shape[1]; ++t) {
      const DropoutRow row =
          dropout_row(joined(call, 0), joined(call, 2), static_cast<uint32_t>(b), static_cast<uint32_t>(t));
      double* key = keys.row(b * keys.shape[1] + t);
      key[0] = word(row.first);
      key[1] = word(row.second);
      key[2] = call[4];
    }
}

void gradient_DropoutKeys(GradientContext&) {}  // nothing flows into integers

// expert_keys (keys i32[B,T,3], experts i32[B,T,J], positions i32[B,T,J], starts i32[X+1]) -> i32[B,T,J,3]
void infer_ExpertKeys(InferContext& c) {
  if (!need(c, 1, "experts", DType::I32, 3, 3) || !need(c, 3, "starts", DType::I32, 1, 1)) return;
  const Type& experts = *c.operands[1];
  const Dim B = experts.shape[0], T = experts.shape[1], J = experts.shape[2];
  if (!need_type(c, 0, "keys", {DType::I32, {B, T, Dim(3)}}) || !need_type(c, 2, "positions", experts)) return;
  c.results = {{DType::I32, {B, T, J, Dim(3)}}};
}

void eval_ExpertKeys(const EvalContext& c) {
  const Tensor &keys = need(c, 0), &experts = need(c, 1), &positions = need(c, 2);
  for (int64_t i = 0; i < positions.elements(); ++i) {
    if (positions[i] < 0) continue;
    const uint64_t stream = dropout_stream(0, static_cast<uint64_t>(experts[i]));
    const double* of_token = keys.row(i / positions.width());
    double* key = c.results[0].row(static_cast<int64_t>(positions[i]));
    const auto mixed = [](double bits, uint64_t half) {
      const auto word = static_cast<uint32_t>(static_cast<int64_t>(bits)) ^ static_cast<uint32_t>(half);
      return static_cast<double>(static_cast<int32_t>(word));
    };
    key[0] = mixed(of_token[0], stream);
    key[1] = mixed(of_token[1], stream >> 32);
    key[2] = of_token[2];
  }
}

void gradient_ExpertKeys(GradientContext&) {}

// dropout (x f[B,T,W] | f[B,T,J,W], keys i32[B,T,3] | i32[B,T,J,3]) {p, place} -> same
void infer_Dropout(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3, 4)) return;
  const Type& x = *c.operands[0];
  if (!need_type(c, 1, "keys", with_dtype(with_last(x, Dim(3)), DType::I32)) || !need_probability(c, "p")) return;
  c.results = {x};
}

void eval_Dropout(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  Tensor& y = c.results[0];
  const double p = c.attributes.real("p");
  const uint64_t stream = dropout_stream(dropout_place(c.attributes.text("place")), 0);
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t w = 0; w < x.width(); ++w)
      y.row(r)[w] = dropped(x.row(r)[w], need(c, 1).row(r), stream, w, p);
}

// dx = the upstream, dropped alike
void gradient_Dropout(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::Dropout, {c.upstream(), c.operand(1)}, c.node().attributes, "dx")});
}

bool need_probability(InferContext& c, const char* key) {
  const double p = c.attributes.real(key);
  if (p >= 0 && p <= 1) return true;
  return fail(c, std::string("attribute ") + key + " is " + attribute_text(p) + ", expected 0 to 1");
}

double dropped(double value, const double* key, uint64_t stream, int64_t column, double p) {
  if (key[2] == 0) return value;  // this call drops nothing
  const auto word = [](double bits) { return static_cast<uint32_t>(static_cast<int64_t>(bits)); };
  const uint32_t draw = dropout_draw({word(key[0]), word(key[1])}, stream, static_cast<uint32_t>(column));
  return draw < dropout_threshold(p) ? 0 : value * dropout_scale(p);
}

}  // namespace tfc::ir
