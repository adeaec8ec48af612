// From ids to rows, and what positions add to them or turn in them.
#include <algorithm>
#include <cmath>

#include "ir/ops/rules.h"

namespace tfc::ir {
namespace {

/// Position of row (b,t): t, further on by the row's offset where the tokens before it are in a cache; or as given,
/// i32[B,T].
int64_t position(const Tensor* offsets, int64_t b, int64_t t) {
  if (!offsets) return t;
  if (offsets->rank() == 2) return static_cast<int64_t>(offsets->row(b)[t]);
  return t + static_cast<int64_t>((*offsets)[b]);
}

/// f[T,width], or f[B,T,width] with offsets i32[B] or (up to rank 2) positions i32[B,T].
void infer_position_table(InferContext& c, uint32_t slot, const Dim& tokens, const Dim& width, int64_t most_rank) {
  const Type* given = operand_type(c, slot);
  if (given == nullptr) {
    c.results = {{c.real, {tokens, width}}};
    return;
  }
  if (!need(c, slot, "offsets", DType::I32, 1, most_rank)) return;
  const Dim B = given->shape[0];
  if (given->rank() == 1 || need_type(c, slot, "positions", {DType::I32, {B, tokens}}))
    c.results = {{c.real, {B, tokens, width}}};
}

/// Rows of a table f[T,W] or f[B,T,W] beside rows (b,t) of a value.
const double* table_row(const Tensor& table, int64_t b, int64_t t, int64_t T) {
  return table.row(table.rank() == 3 ? b * T + t : t);
}

/// x f[B,T,W] beside a table f[T,width] or f[B,T,width].
bool need_table(InferContext& c, uint32_t slot, const char* name, const Type& x, const Dim& width) {
  if (!need(c, slot, name, c.real, 2)) return false;
  const bool own = c.operands[slot]->rank() == 3;
  return need_type(c, slot, name,
                   own ? Type{c.real, {x.shape[0], x.shape[1], width}} : Type{c.real, {x.shape[1], width}});
}

}  // namespace

// ---- token vectors ----

// embedding (ids i32[B,T], table f[V,D], mask? u8[B,T]) {scale} -> f[B,T,D]
void infer_Embedding(InferContext& c) {
  if (!need(c, 0, "ids", DType::I32, 1) || !need(c, 1, "table", c.real, 2, 2)) return;
  const Type& ids = *c.operands[0];
  if (!allow_type(c, 2, "mask", with_dtype(ids, DType::U8))) return;
  Type y = with_dtype(ids, c.real);
  y.shape.push_back(c.operands[1]->shape[1]);
  c.results = {y};
}

static const double* looked_up(const Tensor& table, double id) {
  TFC_CHECK(
      id >= 0 && id < static_cast<double>(table.shape[0]),
      "id " + std::to_string(id) + " is outside a table of " + std::to_string(table.shape[0]) + " rows");
  return table.row(static_cast<int64_t>(id));
}

void eval_Embedding(const EvalContext& c) {
  const Tensor& ids = need(c, 0);
  const double scale = c.attributes.real("scale");
  for (int64_t r = 0; r < ids.elements(); ++r) {
    if (!is_real(operand(c, 2), r)) continue;  // zeros; the id is never read
    const double* vector = looked_up(need(c, 1), ids[r]);
    for (int64_t d = 0; d < c.results[0].width(); ++d) c.results[0].row(r)[d] = scale * vector[d];
  }
}

// dtable[v] = scale * sum of dy over the rows whose id is v
void gradient_Embedding(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(1)) return;
  const Dim rows = type_of(c, c.operand(1)).shape[0];
  TFC_CHECK(rows.constant().has_value(), "the table of %" + c.node().name + " has " + rows.text() + " rows");
  c.give(1, {c.add(OpKind::EmbeddingGrad, {c.upstream(), c.operand(0), optional_operand(c, 2)},
                   {{"scale", c.node().attributes.real("scale")}, {"rows", *rows.constant()}}, "dtable")});
}

// embedding_grad (dy f[B,T,D], ids i32[B,T], mask? u8[B,T]) {scale, rows = V} -> f[V,D]
void infer_EmbeddingGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 2) || !need_positive(c, "rows")) return;
  const Type& dy = *c.operands[0];
  if (!need_type(c, 1, "ids", with_dtype(without_last(dy), DType::I32)) ||
      !allow_type(c, 2, "mask", with_dtype(without_last(dy), DType::U8)))
    return;
  c.results = {{c.real, {Dim(c.attributes.integer("rows")), dy.width()}}};
}

void eval_EmbeddingGrad(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  const Tensor& ids = need(c, 1);
  Tensor& dtable = c.results[0];
  const double scale = c.attributes.real("scale");
  for (int64_t r = 0; r < ids.elements(); ++r) {
    if (!is_real(operand(c, 2), r)) continue;
    looked_up(dtable, ids[r]);  // for its check
    for (int64_t d = 0; d < dy.width(); ++d)
      dtable.row(static_cast<int64_t>(ids[r]))[d] += scale * dy.row(r)[d];
  }
}

// ---- rows added by position ----

// add_rows (x f[B,T,D], rows f[T,D] | f[B,T,D]) -> f[B,T,D]
void infer_AddRows(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3, 3)) return;
  if (need_table(c, 1, "rows", *c.operands[0], c.operands[0]->width())) c.results = {*c.operands[0]};
}

void eval_AddRows(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  const int64_t B = x.shape[0], T = x.shape[1];
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t d = 0; d < x.width(); ++d)
        c.results[0].row(b * T + t)[d] = x.row(b * T + t)[d] + table_row(need(c, 1), b, t, T)[d];
}

// dx = dy      drows = dy, summed over B where the rows were broadcast
void gradient_AddRows(GradientContext& c) {
  const Value dy = c.upstream();
  if (!dy.valid()) return;
  if (c.wanted(0)) c.give(0, dy);
  if (!c.wanted(1)) return;
  const bool broadcast = type_of(c, c.operand(1)).rank() == 2;
  c.give(1, broadcast ? Value{c.add(OpKind::BatchSum, {dy}, {}, "drows")} : dy);
}

// batch_sum (dy f[B,T,D]) -> f[T,D]
void infer_BatchSum(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 3, 3)) return;
  const Type& dy = *c.operands[0];
  c.results = {{c.real, {dy.shape[1], dy.shape[2]}}};
}

void eval_BatchSum(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  Tensor& sum = c.results[0];
  for (int64_t b = 0; b < dy.shape[0]; ++b)
    for (int64_t i = 0; i < sum.elements(); ++i) sum[i] += dy[b * sum.elements() + i];
}

// position_rows (table f[P,D], offsets? i32[B]) {tokens} -> f[T,D] | f[B,T,D]
void infer_PositionRows(InferContext& c) {
  if (!need(c, 0, "table", c.real, 2, 2)) return;
  infer_position_table(c, 1, c.attributes.dim("tokens"), c.operands[0]->width(), 1);
}

void eval_PositionRows(const EvalContext& c) {
  const Tensor& table = need(c, 0);
  Tensor& rows = c.results[0];
  const int64_t T = rows.shape[rows.shape.size() - 2];
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const int64_t p = std::min(position(operand(c, 1), r / T, r % T), table.shape[0] - 1);
    for (int64_t d = 0; d < table.width(); ++d) rows.row(r)[d] = table.row(p)[d];
  }
}

// dtable[t] = drows[t] for t < T, zero past T
void gradient_PositionRows(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  TFC_CHECK(!optional_operand(c, 1).valid(),
            "%" + c.node().name + " has offsets: nothing trains through a cache");
  const Dim rows = type_of(c, c.operand(0)).shape[0];
  TFC_CHECK(rows.constant().has_value(), "the table of %" + c.node().name + " has " + rows.text() + " rows");
  c.give(0, {c.add(OpKind::PositionRowsGrad, {c.upstream()}, {{"rows", *rows.constant()}}, "dtable")});
}

// position_rows_grad (drows f[T,D]) {rows = P} -> f[P,D]
void infer_PositionRowsGrad(InferContext& c) {
  if (!need(c, 0, "drows", c.real, 2, 2) || !need_positive(c, "rows")) return;
  c.results = {{c.real, {Dim(c.attributes.integer("rows")), c.operands[0]->width()}}};
}

void eval_PositionRowsGrad(const EvalContext& c) {
  const Tensor& drows = need(c, 0);
  TFC_CHECK(drows.elements() <= c.results[0].elements(), "there are more positions than rows in the table");
  for (int64_t i = 0; i < drows.elements(); ++i) c.results[0][i] = drows[i];
}

// sinusoid (offsets? i32[B] | positions i32[B,T]) {width = D, tokens} -> f[T,D] | f[B,T,D]   (Vaswani et al. 2017,
// arXiv:1706.03762)
void infer_Sinusoid(InferContext& c) {
  if (!need_positive(c, "width")) return;
  infer_position_table(c, 0, c.attributes.dim("tokens"), c.attributes.integer("width"), 2);
}

void eval_Sinusoid(const EvalContext& c) {
  Tensor& rows = c.results[0];
  const int64_t T = rows.shape[rows.shape.size() - 2], D = rows.width();
  for (int64_t r = 0; r < rows.rows(); ++r)
    for (int64_t d = 0; d < D; ++d) {
      const double pair = static_cast<double>(d - d % 2);
      const double frequency = std::pow(10000.0, -pair / static_cast<double>(D));
      const double angle = static_cast<double>(position(operand(c, 0), r / T, r % T)) * frequency;
      rows.row(r)[d] = d % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
}

// A function of positions alone
void gradient_Sinusoid(GradientContext&) {}

// ---- rotary positions (Su et al. 2021, arXiv:2104.09864) ----

// rope_table (offsets? i32[B] | positions i32[B,T]) {width = E, theta, tokens} -> f[T,E] | f[B,T,E]: cosines, then sines
void infer_RopeTable(InferContext& c) {
  if (!need_positive(c, "width")) return;
  if (c.attributes.integer("width") % 2 != 0) {
    fail(c,
         "attribute width is " + std::to_string(c.attributes.integer("width")) + ", expected an even number");
    return;
  }
  infer_position_table(c, 0, c.attributes.dim("tokens"), c.attributes.integer("width"), 2);
}

void eval_RopeTable(const EvalContext& c) {
  Tensor& rows = c.results[0];
  const int64_t T = rows.shape[rows.shape.size() - 2], E = rows.width();
  const double theta = c.attributes.real("theta");
  for (int64_t r = 0; r < rows.rows(); ++r)
    for (int64_t i = 0; i < E / 2; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(E));
      const double angle = static_cast<double>(position(operand(c, 0), r / T, r % T)) * frequency;
      rows.row(r)[i] = std::cos(angle);
      rows.row(r)[E / 2 + i] = std::sin(angle);
    }
}

// A function of positions alone
void gradient_RopeTable(GradientContext&) {}

// rope (x f[B,T,H*E], table f[T,E] | f[B,T,E]) {heads, head_dim, style, inverse} -> as x
void infer_Rope(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3, 3) || !need_positive(c, "heads") || !need_positive(c, "head_dim")) return;
  const int64_t H = c.attributes.integer("heads"), E = c.attributes.integer("head_dim");
  const std::string& style = c.attributes.text("style");
  if (style != "half" && style != "interleaved") {
    fail(c, "attribute style is '" + style + "', expected half or interleaved");
    return;
  }
  Type x = *c.operands[0];
  if (E % 2 != 0) {
    fail(c, "attribute head_dim is " + std::to_string(E) + ", expected an even number");
    return;
  }
  if (!need_type(c, 0, "x", with_last(x, Dim(H) * Dim(E))) || !need_table(c, 1, "table", x, E)) return;
  c.results = {x};
}

void eval_Rope(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  Tensor& y = c.results[0];
  const int64_t T = x.shape[1], H = c.attributes.integer("heads"), E = c.attributes.integer("head_dim");
  const bool half = c.attributes.text("style") == "half";
  const double direction = c.attributes.flag("inverse") ? -1 : 1;
  for (int64_t r = 0; r < x.rows(); ++r) {
    const double* table = table_row(need(c, 1), r / T, r % T, T);
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < E / 2; ++i) {
        const int64_t first = h * E + (half ? i : 2 * i), second = half ? first + E / 2 : first + 1;
        const double cosine = table[i], sine = direction * table[E / 2 + i];
        y.row(r)[first] = x.row(r)[first] * cosine - x.row(r)[second] * sine;
        y.row(r)[second] = x.row(r)[first] * sine + x.row(r)[second] * cosine;
      }
  }
}

// A rotation's derivative is the rotation back
void gradient_Rope(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  Attributes attributes = c.node().attributes;
  attributes.set("inverse", !attributes.flag("inverse"));
  c.give(0, {c.add(OpKind::Rope, {c.upstream(), c.operand(1)}, std::move(attributes), "dx")});
}

// ---- padding ----

// mask_rows (x f[B,T,W], mask u8[B,T]) -> as x: zeros where masked
void infer_MaskRows(InferContext& c) {
  if (!need(c, 0, "x", c.real, 1)) return;
  const Type& x = *c.operands[0];
  if (need_type(c, 1, "mask", with_dtype(without_last(x), DType::U8))) c.results = {x};
}

void eval_MaskRows(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  for (int64_t r = 0; r < x.rows(); ++r) {
    if (!is_real(&need(c, 1), r)) continue;
    for (int64_t d = 0; d < x.width(); ++d) c.results[0].row(r)[d] = x.row(r)[d];
  }
}

// dx = dy where not masked
void gradient_MaskRows(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::MaskRows, {c.upstream(), c.operand(1)}, {}, "dx")});
}

}  // namespace tfc::ir
