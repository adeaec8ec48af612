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

// dropout (x f[B,T,W], keys i32[B,T,3]) {p, place} -> same
void infer_Dropout(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3, 3)) return;
  const Type& x = *c.operands[0];
  if (!need_type(c, 1, "keys", {DType::I32, {x.shape[0], x.shape[1], Dim(3)}}) || !need_probability(c, "p"))
    return;
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
