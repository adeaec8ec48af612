// Scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762) with grouped heads (Ainslie et al.
// 2023, arXiv:2305.13245), its gradients from the saved log-sums (Dao et al. 2022, arXiv:2205.14135), and the
// cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/dropout.h"
#include "ir/ops/rules.h"

namespace tfc::ir {
namespace {

struct Sizes {
  int64_t B, T, S, H, G, E;
  double scale;
  bool causal;
};

Sizes sizes_of(const Attributes& attributes, const Tensor& q, const Tensor& k) {
  return {q.shape[0],
          q.shape[1],
          k.shape[1],
          attributes.integer("heads"),
          attributes.integer("kv_heads"),
          attributes.integer("head_dim"),
          attributes.real("scale"),
          attributes.flag("causal")};
}

/// The keys [0, hi) that query (b,t) may see, before the mask of real keys.
int64_t visible_end(const Sizes& n, const Tensor* offsets, int64_t b, int64_t t) {
  int64_t end = n.S;
  if (offsets) {
    end = static_cast<int64_t>((*offsets)[b]) + (n.causal ? t + 1 : 0);
  } else if (n.causal) {
    end = t + n.S - n.T + 1;  // the ends align
  }
  return std::clamp<int64_t>(end, 0, n.S);
}

bool need_heads(InferContext& c, const Type& q, const Type& k) {
  if (!need_positive(c, "heads") || !need_positive(c, "kv_heads") || !need_positive(c, "head_dim"))
    return false;
  const Dim H = c.attributes.integer("heads"), G = c.attributes.integer("kv_heads"),
            E = c.attributes.integer("head_dim");
  if (*H.constant() % *G.constant() != 0)
    return fail(c, H.text() + " heads cannot share " + G.text() + " key heads, expected a multiple");
  if (q.width() != H * E) return fail(c, "q is " + q.text() + ", expected width " + (H * E).text());
  if (k.width() != G * E) return fail(c, "k is " + k.text() + ", expected width " + (G * E).text());
  if (k.shape[0] != q.shape[0]) return fail(c, "k is " + k.text() + ", expected the batch of q, " + q.text());
  return true;
}

Type log_sum_type(const InferContext& c, const Type& q) {
  return {c.real, {q.shape[0], Dim(c.attributes.integer("heads")), q.shape[1]}};
}

/// The keys of dropout and the attributes that go with them, or neither.
bool allow_dropout(InferContext& c, uint32_t slot, const Type& q) {
  if (operand_type(c, slot) == nullptr) return true;
  if (!c.attributes.has("p") || !c.attributes.has("place"))
    return fail(c, "the attributes p and place are missing, which dropout's keys need");
  return need_type(c, slot, "dropout", {DType::I32, {q.shape[0], q.shape[1], Dim(3)}}) &&
         need_probability(c, "p");
}

/// What becomes of a query's softmax weights: m = 0 where one is dropped, else 1 / (1 - p).
struct WeightDropout {
  const Tensor* keys;
  double p = 0;
  uint64_t place = 0;

  WeightDropout(const EvalContext& c, size_t slot) : keys(operand(c, slot)) {
    if (keys == nullptr) return;
    p = c.attributes.real("p");
    place = dropout_place(c.attributes.text("place"));
  }
  double operator()(double weight, int64_t row, int64_t h, int64_t s) const {
    if (keys == nullptr) return weight;
    return dropped(weight, keys->row(row), dropout_stream(place, static_cast<uint64_t>(h)), s, p);
  }
};

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

// attention (q f[B,T,H*E], k f[B,S,G*E], v f[B,S,G*E], key_mask? u8[B,S], offsets? i32[B],
//            dropout? i32[B,T,3]) {heads, kv_heads, head_dim, scale, causal, p?, place?} -> o f[B,T,H*E], lse f[B,H,T]
void infer_Attention(InferContext& c) {
  if (!need(c, 0, "q", c.real, 3, 3) || !need(c, 1, "k", c.real, 3, 3)) return;
  const Type& q = *c.operands[0];
  const Type& k = *c.operands[1];
  if (!need_heads(c, q, k) || !need_type(c, 2, "v", k) ||
      !allow_type(c, 3, "key_mask", {DType::U8, {k.shape[0], k.shape[1]}}) ||
      !allow_type(c, 4, "offsets", {DType::I32, {q.shape[0]}}) || !allow_dropout(c, 5, q))
    return;
  c.results = {q, log_sum_type(c, q)};
}

// o = softmax(scale * q k^T) v over the visible keys; nothing of an invisible key is read.
void eval_Attention(const EvalContext& c) {
  const Tensor& q = need(c, 0);
  const Tensor& k = need(c, 1);
  const Tensor& v = need(c, 2);
  const Sizes n = sizes_of(c.attributes, q, k);
  const WeightDropout drop(c, 5);
  std::vector<double> score(static_cast<size_t>(n.S));
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.H; ++h)
      for (int64_t t = 0; t < n.T; ++t) {
        const double* query = q.row(b * n.T + t) + h * n.E;
        double* out = c.results[0].row(b * n.T + t) + h * n.E;
        double& log_sum = c.results[1][(b * n.H + h) * n.T + t];
        const int64_t g = h / (n.H / n.G), end = visible_end(n, operand(c, 4), b, t);

        double greatest = -std::numeric_limits<double>::infinity();
        bool any = false;
        for (int64_t s = 0; s < end; ++s) {
          if (!is_real(operand(c, 3), b * n.S + s)) continue;
          any = true;
          score[static_cast<size_t>(s)] = n.scale * dot(query, k.row(b * n.S + s) + g * n.E, n.E);
          greatest = std::fmax(greatest, score[static_cast<size_t>(s)]);
        }
        log_sum = -std::numeric_limits<double>::infinity();
        if (!any) continue;  // no visible key: zeros

        double sum = 0;
        for (int64_t s = 0; s < end; ++s) {
          if (!is_real(operand(c, 3), b * n.S + s)) continue;
          const double weight = std::exp(score[static_cast<size_t>(s)] - greatest);
          sum += weight;
          const double kept = drop(weight, b * n.T + t, h, s);
          for (int64_t e = 0; e < n.E; ++e) out[e] += kept * (v.row(b * n.S + s) + g * n.E)[e];
        }
        for (int64_t e = 0; e < n.E; ++e) out[e] /= sum;
        log_sum = greatest + std::log(sum);
      }
}

void gradient_Attention(GradientContext& c) {
  refuse_upstream(c, 1);
  if (!c.upstream().valid()) return;
  TFC_CHECK(!optional_operand(c, 4).valid(),
            "%" + c.node().name + " has offsets: nothing trains through a cache");
  std::vector<Value> operands = {c.upstream(), c.operand(0), c.operand(1), c.operand(2),
                                 c.result(0),  c.result(1),  optional_operand(c, 3)};
  if (const Value dropout = optional_operand(c, 5); dropout.valid()) operands.push_back(dropout);
  const NodeId grad = c.add(OpKind::AttentionGrad, operands, c.node().attributes, "grad");
  for (uint32_t slot = 0; slot < 3; ++slot)
    if (c.wanted(slot)) c.give(slot, {grad, slot});
}

// attention_grad (do, q, k, v, o, lse, key_mask?, dropout?) {as attention} -> dq, dk, dv
void infer_AttentionGrad(InferContext& c) {
  if (!need(c, 1, "q", c.real, 3, 3) || !need(c, 2, "k", c.real, 3, 3)) return;
  const Type& q = *c.operands[1];
  const Type& k = *c.operands[2];
  if (!need_heads(c, q, k) || !need_type(c, 0, "do", q) || !need_type(c, 3, "v", k) ||
      !need_type(c, 4, "o", q) || !need_type(c, 5, "lse", log_sum_type(c, q)) ||
      !allow_type(c, 6, "key_mask", {DType::U8, {k.shape[0], k.shape[1]}}) || !allow_dropout(c, 7, q))
    return;
  c.results = {q, k, k};
}

// With p = exp(scale * q k - lse), the weights, m what dropout multiplies them by (1 without), and D = sum_e do * o,
// the mean of dp under p:
//   dv = sum_t m p do      dp = m do v      ds = p (dp - D)      dq = scale * sum_s ds k      dk = scale * sum_t ds q
void eval_AttentionGrad(const EvalContext& c) {
  const Tensor& dout = need(c, 0);
  const Tensor& q = need(c, 1);
  const Tensor& k = need(c, 2);
  const Tensor& v = need(c, 3);
  const Sizes n = sizes_of(c.attributes, q, k);
  const WeightDropout drop(c, 7);
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.H; ++h)
      for (int64_t t = 0; t < n.T; ++t) {
        const int64_t row = b * n.T + t, column = h * n.E, key_column = h / (n.H / n.G) * n.E;
        const double log_sum = need(c, 5)[(b * n.H + h) * n.T + t];
        if (log_sum == -std::numeric_limits<double>::infinity()) continue;  // no visible key
        const double mean = dot(dout.row(row) + column, need(c, 4).row(row) + column, n.E);
        for (int64_t s = 0; s < visible_end(n, nullptr, b, t); ++s) {
          const int64_t key = b * n.S + s;
          if (!is_real(operand(c, 6), key)) continue;
          const double* k_row = k.row(key) + key_column;
          const double p = std::exp(n.scale * dot(q.row(row) + column, k_row, n.E) - log_sum);
          const double m = drop(1, row, h, s);
          const double ds = p * (m * dot(dout.row(row) + column, v.row(key) + key_column, n.E) - mean);
          for (int64_t e = 0; e < n.E; ++e) {
            c.results[0].row(row)[column + e] += n.scale * ds * k_row[e];
            c.results[1].row(key)[key_column + e] += n.scale * ds * q.row(row)[column + e];
            c.results[2].row(key)[key_column + e] += m * p * dout.row(row)[column + e];
          }
        }
      }
}

// cache_append (cache f[B,C,W], rows f[B,T,W], offsets i32[B], mask? u8[B,T]) -> f[B,C,W]
void infer_CacheAppend(InferContext& c) {
  if (!need(c, 0, "cache", c.real, 3, 3) || !need(c, 1, "rows", c.real, 3, 3)) return;
  const Type& cache = *c.operands[0];
  const Type& rows = *c.operands[1];
  if (!need_type(c, 1, "rows", {c.real, {cache.shape[0], rows.shape[1], cache.shape[2]}}) ||
      !need_type(c, 2, "offsets", {DType::I32, {cache.shape[0]}}) ||
      !allow_type(c, 3, "mask", {DType::U8, {cache.shape[0], rows.shape[1]}}))
    return;
  c.results = {cache};
}

// Row (b,t) goes to slot offsets[b] + t where its mask is 1.
void eval_CacheAppend(const EvalContext& c) {
  const Tensor& rows = need(c, 1);
  Tensor& cache = c.results[0];
  cache.data = need(c, 0).data;
  const int64_t B = rows.shape[0], T = rows.shape[1], C = cache.shape[1];
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t) {
      if (!is_real(operand(c, 3), b * T + t)) continue;
      const int64_t slot = static_cast<int64_t>(need(c, 2)[b]) + t;
      TFC_CHECK(slot < C,
                "the cache has " + std::to_string(C) + " slots, row goes to " + std::to_string(slot));
      for (int64_t w = 0; w < rows.width(); ++w) cache.row(b * C + slot)[w] = rows.row(b * T + t)[w];
    }
}

}  // namespace tfc::ir
