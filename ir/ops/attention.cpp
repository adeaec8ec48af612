// Scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762) with grouped heads (Ainslie et al.
// 2023, arXiv:2305.13245), its gradients from the saved log-sums (Dao et al. 2022, arXiv:2205.14135), and the
// cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/alibi.h"
#include "ir/dropout.h"
#include "ir/ops/rules.h"

namespace tfc::ir {
namespace {

struct Sizes {
  int64_t B, T, S, H, G, E, window, after;
  double scale;
  bool causal, alibi;
};

Sizes sizes_of(const Attributes& attributes, const Tensor& q, const Tensor& k) {
  return {q.shape[0],
          q.shape[1],
          k.shape[1],
          attributes.integer("heads"),
          attributes.integer("kv_heads"),
          attributes.integer("head_dim"),
          attributes.integer("window", 0),
          attributes.integer("after", 0),
          attributes.real("scale"),
          attributes.flag("causal"),
          attributes.flag("alibi")};
}

/// What says which keys a query sees, and how far they are, besides the attributes. Absent ones are null.
struct Sight {
  const Tensor *key_mask, *offsets, *prefix, *documents, *key_documents, *positions, *key_positions;
  const Tensor *new_k, *new_v;  // k and v are rings
};

struct Interval {
  int64_t begin, end;
};

/// The key that query (b,t) itself stands at.
int64_t own_key(const Sizes& n, const Sight& sight, int64_t b, int64_t t) {
  return t + (sight.offsets ? static_cast<int64_t>((*sight.offsets)[b]) : n.S - n.T);
}

int64_t keys_of_row(const Sizes& n, const Sight& sight, int64_t b) {
  return sight.new_k ? static_cast<int64_t>((*sight.offsets)[b]) + n.T : n.S;
}

/// The keys that query (b,t) may see by their place alone.
Interval interval(const Sizes& n, const Sight& sight, int64_t b, int64_t t) {
  const int64_t own = own_key(n, sight, b, t);
  int64_t begin = 0, end = n.S;
  if (sight.offsets) end = static_cast<int64_t>((*sight.offsets)[b]);
  if (n.window > 0) {
    begin = own + 1 - n.window;
    end = own + 1 + n.after;
  }
  if (n.causal) end = own + 1;
  if (sight.prefix) {
    const auto prefix = static_cast<int64_t>((*sight.prefix)[b]);
    end = std::max(end, n.window > 0 ? std::min(prefix, own + n.window) : prefix);
  }
  return {std::max<int64_t>(begin, 0), std::min(end, keys_of_row(n, sight, b))};
}

bool sees(const Sizes& n, const Sight& sight, int64_t b, int64_t t, int64_t s) {
  if (!is_real(sight.key_mask, b * n.S + s)) return false;
  return !sight.documents || sight.documents->row(b)[t] == sight.key_documents->row(b)[s];
}

/// What is added to the score of query (b,t) and key s for each unit of slope.
double nearness(const Sizes& n, const Sight& sight, int64_t b, int64_t t, int64_t s) {
  if (!sight.positions) return -std::abs(static_cast<double>(own_key(n, sight, b, t) - s));
  return -std::abs(sight.positions->row(b)[t] - sight.key_positions->row(b)[s]);
}

/// Row s of sequence b, of k or v.
const double* key_row(const Sizes& n, const Sight& sight, const Tensor& keys, const Tensor* fresh, int64_t b,
                      int64_t s) {
  if (!fresh) return keys.row(b * n.S + s);
  const auto cached = static_cast<int64_t>((*sight.offsets)[b]);
  return s < cached ? keys.row(b * n.S + s % n.S) : fresh->row(b * n.T + s - cached);
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

/// prefix?, documents?, key_documents?, positions?, key_positions? from an operand on. Those of the keys come together
/// with the queries'; beside a ring (operand 10) they are the whole cache's.
bool need_sight(InferContext& c, uint32_t first, const Type& q, const Type& k) {
  if (!allow_type(c, first, "prefix", {DType::I32, {q.shape[0]}})) return false;
  const bool ring = operand_type(c, 10) != nullptr && first == 5;
  for (const auto& [slot, name] : {std::pair(first + 1, "documents"), std::pair(first + 3, "positions")}) {
    const std::string of_keys = std::string("key_") + name;
    const Type* keys = operand_type(c, slot + 1);
    if ((operand_type(c, slot) == nullptr) != (keys == nullptr))
      return fail(c, std::string(name) + " and " + of_keys + " come together");
    if (!keys) continue;
    if (!need_type(c, slot, name, {DType::I32, {q.shape[0], q.shape[1]}}) ||
        !need(c, slot + 1, of_keys.c_str(), DType::I32, 2, 2) ||
        (!ring && !need_type(c, slot + 1, of_keys.c_str(), {DType::I32, {k.shape[0], k.shape[1]}})))
      return false;
  }
  return true;
}

bool need_ring(InferContext& c, const Type& q, const Type& k) {
  const bool ring = operand_type(c, 10) != nullptr;
  if (ring != (operand_type(c, 11) != nullptr)) return fail(c, "new_k and new_v come together");
  if (!ring) return true;
  if (operand_type(c, 4) == nullptr || operand_type(c, 3) != nullptr)
    return fail(c, "a ring of keys comes with offsets and without key_mask");
  const Type fresh{c.real, {q.shape[0], q.shape[1], k.width()}};
  return need_type(c, 10, "new_k", fresh) && need_type(c, 11, "new_v", fresh);
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

// attention (q f[B,T,H*E], k f[B,S,G*E], v f[B,S,G*E], key_mask?, offsets?, prefix?, documents?, key_documents?,
//            positions?, key_positions?, new_k?, new_v?, dropout?) {as in ir/ops.def} -> o f[B,T,H*E], lse f[B,H,T]
void infer_Attention(InferContext& c) {
  if (!need(c, 0, "q", c.real, 3, 3) || !need(c, 1, "k", c.real, 3, 3)) return;
  const Type& q = *c.operands[0];
  const Type& k = *c.operands[1];
  if (!need_heads(c, q, k) || !need_type(c, 2, "v", k) ||
      !allow_type(c, 3, "key_mask", {DType::U8, {k.shape[0], k.shape[1]}}) ||
      !allow_type(c, 4, "offsets", {DType::I32, {q.shape[0]}}) || !need_sight(c, 5, q, k) || !need_ring(c, q, k) ||
      !allow_dropout(c, 12, q))
    return;
  c.results = {q, log_sum_type(c, q)};
}

// o = softmax(scale * q k^T) v over the visible keys; nothing of an invisible key is read.
void eval_Attention(const EvalContext& c) {
  const Tensor& q = need(c, 0);
  const Tensor& k = need(c, 1);
  const Tensor& v = need(c, 2);
  const Sizes n = sizes_of(c.attributes, q, k);
  const WeightDropout drop(c, 12);
  const Sight sight{operand(c, 3), operand(c, 4), operand(c, 5),  operand(c, 6), operand(c, 7),
                    operand(c, 8), operand(c, 9), operand(c, 10), operand(c, 11)};
  const std::vector<double> slopes = alibi_slopes(n.H);
  std::vector<double> score;
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.H; ++h)
      for (int64_t t = 0; t < n.T; ++t) {
        const double* query = q.row(b * n.T + t) + h * n.E;
        double* out = c.results[0].row(b * n.T + t) + h * n.E;
        double& log_sum = c.results[1][(b * n.H + h) * n.T + t];
        const int64_t g = h / (n.H / n.G);
        const Interval keys = interval(n, sight, b, t);
        score.resize(static_cast<size_t>(keys_of_row(n, sight, b)));

        double greatest = -std::numeric_limits<double>::infinity();
        bool any = false;
        for (int64_t s = keys.begin; s < keys.end; ++s) {
          if (!sees(n, sight, b, t, s)) continue;
          any = true;
          double& one = score[static_cast<size_t>(s)];
          one = n.scale * dot(query, key_row(n, sight, k, sight.new_k, b, s) + g * n.E, n.E);
          if (n.alibi) one += slopes[static_cast<size_t>(h)] * nearness(n, sight, b, t, s);
          greatest = std::fmax(greatest, one);
        }
        log_sum = -std::numeric_limits<double>::infinity();
        if (!any) continue;  // no visible key: zeros

        double sum = 0;
        for (int64_t s = keys.begin; s < keys.end; ++s) {
          if (!sees(n, sight, b, t, s)) continue;
          const double weight = std::exp(score[static_cast<size_t>(s)] - greatest);
          const double* value = key_row(n, sight, v, sight.new_v, b, s) + g * n.E;
          sum += weight;
          const double kept = drop(weight, b * n.T + t, h, s);
          for (int64_t e = 0; e < n.E; ++e) out[e] += kept * value[e];
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
  std::vector<Value> operands = {c.upstream(), c.operand(0), c.operand(1),          c.operand(2),
                                 c.result(0),  c.result(1),  optional_operand(c, 3)};
  for (uint32_t slot : {5u, 6u, 7u, 8u, 9u, 12u}) operands.push_back(optional_operand(c, slot));
  while (!operands.back().valid()) operands.pop_back();
  const NodeId grad = c.add(OpKind::AttentionGrad, operands, c.node().attributes, "grad");
  for (uint32_t slot = 0; slot < 3; ++slot)
    if (c.wanted(slot)) c.give(slot, {grad, slot});
}

// attention_grad (do, q, k, v, o, lse, key_mask?, prefix?, documents?, key_documents?, positions?, key_positions?,
//                 dropout?) {as attention} -> dq, dk, dv
void infer_AttentionGrad(InferContext& c) {
  if (!need(c, 1, "q", c.real, 3, 3) || !need(c, 2, "k", c.real, 3, 3)) return;
  const Type& q = *c.operands[1];
  const Type& k = *c.operands[2];
  if (!need_heads(c, q, k) || !need_type(c, 0, "do", q) || !need_type(c, 3, "v", k) ||
      !need_type(c, 4, "o", q) || !need_type(c, 5, "lse", log_sum_type(c, q)) ||
      !allow_type(c, 6, "key_mask", {DType::U8, {k.shape[0], k.shape[1]}}) || !need_sight(c, 7, q, k) ||
      !allow_dropout(c, 12, q))
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
  const Sight sight{operand(c, 6), nullptr,        operand(c, 7), operand(c, 8), operand(c, 9),
                    operand(c, 10), operand(c, 11), nullptr,       nullptr};
  const std::vector<double> slopes = alibi_slopes(n.H);
  const WeightDropout drop(c, 12);
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.H; ++h)
      for (int64_t t = 0; t < n.T; ++t) {
        const int64_t row = b * n.T + t, column = h * n.E, key_column = h / (n.H / n.G) * n.E;
        const double log_sum = need(c, 5)[(b * n.H + h) * n.T + t];
        if (log_sum == -std::numeric_limits<double>::infinity()) continue;  // no visible key
        const double mean = dot(dout.row(row) + column, need(c, 4).row(row) + column, n.E);
        const Interval keys = interval(n, sight, b, t);
        for (int64_t s = keys.begin; s < keys.end; ++s) {
          const int64_t key = b * n.S + s;
          if (!sees(n, sight, b, t, s)) continue;
          const double* k_row = k.row(key) + key_column;
          double score = n.scale * dot(q.row(row) + column, k_row, n.E);
          if (n.alibi) score += slopes[static_cast<size_t>(h)] * nearness(n, sight, b, t, s);
          const double p = std::exp(score - log_sum);
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

// attention_weights (q, k, lse, key_mask?, offsets?, query_mask?, prefix?, documents?, key_documents?, positions?,
//                    key_positions?) {as attention} -> f[B,H,T,S]
void infer_AttentionWeights(InferContext& c) {
  if (!need(c, 0, "q", c.real, 3, 3) || !need(c, 1, "k", c.real, 3, 3)) return;
  const Type& q = *c.operands[0];
  const Type& k = *c.operands[1];
  if (!need_heads(c, q, k) || !need_type(c, 2, "lse", log_sum_type(c, q)) ||
      !allow_type(c, 3, "key_mask", {DType::U8, {k.shape[0], k.shape[1]}}) ||
      !allow_type(c, 4, "offsets", {DType::I32, {q.shape[0]}}) ||
      !allow_type(c, 5, "query_mask", {DType::U8, {q.shape[0], q.shape[1]}}) || !need_sight(c, 6, q, k))
    return;
  c.results = {{c.real, {q.shape[0], Dim(c.attributes.integer("heads")), q.shape[1], k.shape[1]}}};
}

// exp(scale * q k - lse) over the visible keys.
void eval_AttentionWeights(const EvalContext& c) {
  const Tensor& q = need(c, 0);
  const Tensor& k = need(c, 1);
  const Sizes n = sizes_of(c.attributes, q, k);
  const Sight sight{operand(c, 3), operand(c, 4), operand(c, 6), operand(c, 7), operand(c, 8),
                    operand(c, 9), operand(c, 10), nullptr,      nullptr};
  const std::vector<double> slopes = alibi_slopes(n.H);
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.H; ++h)
      for (int64_t t = 0; t < n.T; ++t) {
        if (!is_real(operand(c, 5), b * n.T + t)) continue;
        const int64_t row = (b * n.H + h) * n.T + t;
        const double log_sum = need(c, 2)[row];
        const Interval keys = interval(n, sight, b, t);
        for (int64_t s = keys.begin; s < keys.end; ++s) {
          if (!sees(n, sight, b, t, s)) continue;
          double score = n.scale * dot(q.row(b * n.T + t) + h * n.E, k.row(b * n.S + s) + h / (n.H / n.G) * n.E, n.E);
          if (n.alibi) score += slopes[static_cast<size_t>(h)] * nearness(n, sight, b, t, s);
          c.results[0].row(row)[s] = std::exp(score - log_sum);
        }
      }
}

// cache_append (cache f[B,C,W] | i32[B,C], rows f[B,T,W] | i32[B,T], offsets i32[B], mask? u8[B,T]) {ring} -> as cache
void infer_CacheAppend(InferContext& c) {
  const bool ids = operand_type(c, 0) && operand_type(c, 0)->dtype == DType::I32;
  const DType dtype = ids ? DType::I32 : c.real;
  const int64_t rank = ids ? 2 : 3;
  if (!need(c, 0, "cache", dtype, rank, rank) || !need(c, 1, "rows", dtype, rank, rank)) return;
  const Type& cache = *c.operands[0];
  const Type& rows = *c.operands[1];
  Type expected = cache;
  expected.shape[1] = rows.shape[1];
  if (!need_type(c, 1, "rows", expected) || !need_type(c, 2, "offsets", {DType::I32, {cache.shape[0]}}) ||
      !allow_type(c, 3, "mask", {DType::U8, {cache.shape[0], rows.shape[1]}}))
    return;
  c.results = {cache};
}

// Row (b,t) goes to slot offsets[b] + t where its mask is 1; in a ring later rows replace earlier ones.
void eval_CacheAppend(const EvalContext& c) {
  const Tensor& rows = need(c, 1);
  Tensor& cache = c.results[0];
  cache.data = need(c, 0).data;
  const int64_t B = rows.shape[0], T = rows.shape[1], C = cache.shape[1];
  const int64_t width = rows.elements() / (B * T);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t) {
      if (!is_real(operand(c, 3), b * T + t)) continue;
      int64_t slot = static_cast<int64_t>(need(c, 2)[b]) + t;
      if (c.attributes.flag("ring")) slot %= C;
      TFC_CHECK(slot < C,
                "the cache has " + std::to_string(C) + " slots, row goes to " + std::to_string(slot));
      for (int64_t w = 0; w < width; ++w) cache[(b * C + slot) * width + w] = rows[(b * T + t) * width + w];
    }
}

}  // namespace tfc::ir
