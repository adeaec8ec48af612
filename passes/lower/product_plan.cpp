#include "passes/lower/product_plan.h"

#include <algorithm>
#include <functional>

#include "ir/check.h"

namespace tfc::passes {

namespace {

using ir::Dim;

// Of codegen/kernels/product.cpp: columns are cut at multiples of this.
constexpr int64_t kStripColumns = 32;
// Enough tasks for the cores of a desktop machine, where a product is large enough to have them. Of forms nt and nn,
// whose tasks each read all of a block's rows of A, fewer and wider ones.
constexpr int64_t kTasks = 12, kForwardTasks = 8;
// A task's block of C: panels of B [k block, columns] stay in the second-level cache, and each is packed for as many
// rows of A as may be, which pass over them. Below the least height a task packs more than it multiplies.
constexpr int64_t kBlockStrips = 4, kBlockRows = 512, kLeastRows = 56;
// A weight's gradient copies a tile's columns of A and passes all strips of B over them: the wider, the less. Of these
// widths the first that makes tasks enough, or the last.
constexpr int64_t kGradientStrips = 24, kGradientWidths[] = {kGradientStrips, 12, 4}, kGradientRows = 192;
constexpr int64_t kPartDepth = 256, kUsualParts = 3;
// Greatest width of a tile and of a panel of A of any target, for the scratch.
constexpr int64_t kTileColumns = 32, kPanelRows = 16;
constexpr int64_t kFetchBytes = 64;

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t element_bytes(const Lowering& lowering) { return ir::dtype_bytes(lowering.module().real); }

/// Most steps of k whose panels fit: half as many of the larger type.
int64_t depth_block(const Lowering& lowering) { return 1536 / element_bytes(lowering); }

struct Cut {
  Dim row_blocks, column_blocks, parts = 1;
  Dim greatest_parts = 1;  // in any iteration
  int64_t strips = 1;      // most of a task
  int64_t rows = 0;        // form tn: most of a task
};

/// Forms nt and nn: m is the number of tokens. More than one block of rows repeats the packing of B, so that few tokens
/// are cut by columns alone.
Cut cut_forward(const Product& product) {
  const int64_t strips = ceiling(product.n, kStripColumns);
  const Dim more_blocks = min(Dim(1), ceildiv(product.m, kBlockRows) - 1);
  const auto choose = [&](const std::function<int64_t(int64_t strips)>& value) {
    const int64_t few = value(std::clamp<int64_t>(strips / kForwardTasks, 1, kBlockStrips));
    // Not one wide block for each of many short ones of rows: each of those would pack all of B again.
    const int64_t many = value(std::clamp<int64_t>(strips / 2, 1, kBlockStrips));
    return Dim(few) + Dim(many - few) * more_blocks;
  };

  Cut cut;
  cut.strips = std::min(strips, kBlockStrips);
  cut.column_blocks = choose([&](int64_t wide) { return ceiling(strips, wide); });
  const Dim wanted = choose([&](int64_t wide) { return ceiling(kForwardTasks, ceiling(strips, wide)); });
  cut.row_blocks = max(ceildiv(product.m, kBlockRows), min(ceildiv(product.m, kLeastRows), wanted));
  return cut;
}

/// Rows by expert, forms nt and nn: a block is a part of one expert's rows, and there are as many as any routing may
/// need: each expert, and what belongs to none, may end in a block that is not full. Those that are not needed return
/// at once.
Cut cut_by_expert(const Product& product) {
  const int64_t strips = ceiling(product.n, kStripColumns);
  const Dim groups = min(product.m, product.experts->count + 1);
  Cut cut;
  cut.strips = std::min(strips, kBlockStrips);
  cut.column_blocks = ceiling(strips, cut.strips);
  cut.row_blocks = groups + ceildiv(product.m - groups, kBlockRows);
  return cut;
}

/// Form tn: m and n are a weight's sizes, k the number of tokens, cut into parts where there are few blocks.
Cut cut_weight_gradient(const Product& product) {
  TFC_CHECK(product.m.constant(), "a weight's gradient has rows without a fixed number: " + product.m.text());
  const int64_t m = *product.m.constant();
  const int64_t strips = ceiling(product.n, kStripColumns);
  Cut cut;
  int64_t rows = ceiling(m, kGradientRows), columns = 1;
  for (const int64_t wide : kGradientWidths) {
    columns = ceiling(strips, wide);
    if (rows * columns >= kTasks) break;
  }
  // The tokens make several parts as a rule; shorter blocks would pack a strip of B for a few tiles alone.
  rows = std::max(rows, std::min(ceiling(m, kLeastRows), ceiling(kTasks, columns * kUsualParts)));
  cut.row_blocks = rows;
  cut.column_blocks = columns;
  cut.strips = ceiling(strips, columns);
  cut.rows = ceiling(m, rows);
  if (product.experts) {
    cut.parts = product.experts->count;
  } else if (rows * columns < kTasks && product.c.stride == product.n) {
    const Dim most = ceiling(kTasks, rows * columns);
    cut.parts = min(ceildiv(product.k, kPartDepth), most);
    cut.greatest_parts = min(ceildiv(product.greatest_k.value_or(product.k), kPartDepth), most);
  }
  return cut;
}

/// As the kernel lays it out: what tiles fetch, the row that sums begin with, a tile's rows or columns of A, panels of
/// B. In form tn, where one panel of B stays in the cache, the room of the others has the panels of A of a block's rows,
/// in tiles of six that take eight.
Dim scratch_bytes(const Cut& cut, int64_t depth, int64_t block_columns, int64_t bytes) {
  const int64_t beside_a = cut.rows == 0 ? 0 : kStripColumns + ceiling(cut.rows, 6) * 8;
  const int64_t panels = depth * std::max(cut.strips * kStripColumns, beside_a) + kPanelRows * kTileColumns;
  const int64_t panel_a = kPanelRows * (depth + kPanelRows);
  return kFetchBytes + ceiling((block_columns + panel_a + panels) * bytes, 64) * 64;
}

}  // namespace

ir::Attributes real_attribute(const Lowering& lowering) { return {{"f", lowering.real_name()}}; }

namespace {

/// out[i] (+)= parts[0][i] + parts[1][i] + ...
void lower_add_parts(Lowering& lowering, ir::Arg out, ir::Arg parts, bool wide, const Dim& elements,
                     const Dim& count, const Dim& accumulate) {
  ir::Record record;
  record.kernel = {"add_parts", {{"f", lowering.real_name()}, {"wide", wide}}};
  record.tasks = ceildiv(elements, 4096);
  record.args = {out,
                 parts,
                 Lowering::integer(elements),
                 Lowering::integer(count),
                 Lowering::integer(elements),
                 Lowering::integer(accumulate),
                 Lowering::integer(record.tasks)};
  record.flops = elements * count;
  record.bytes = elements * (count + 1) * Dim(element_bytes(lowering));
  lowering.call(std::move(record));
}

bool has_epilogue(const Product& product) {
  return !product.activation.empty() || !product.slope.empty() || product.residual_scale || product.dropout;
}

void add_epilogue(ir::Record& record, const Product& product) {
  const bool reads_x = !product.slope.empty() || product.residual_scale;
  if (!product.activation.empty()) record.kernel.attributes.set("activation", product.activation);
  if (!product.slope.empty()) record.kernel.attributes.set("slope", product.slope);
  if (product.residual_scale) record.kernel.attributes.set("residual", *product.residual_scale);
  record.args.push_back(product.out.pointer);
  record.args.push_back(Lowering::integer(product.out.stride));
  record.args.push_back(reads_x ? product.x.pointer : null_pointer());
  record.args.push_back(Lowering::integer(product.x.stride));
  add_dropout(record.kernel.attributes, record.args, "dropout", product.dropout);
  if (product.gamma.index >= 0) {
    record.kernel.attributes.set("gamma", true);
    record.args.push_back(product.gamma);
  }
  if (!product.others.empty())
    record.kernel.attributes.set("others", static_cast<int64_t>(product.others.size()));
  for (const Location& other : product.others) {
    record.args.push_back(other.pointer);
    record.args.push_back(Lowering::integer(other.stride));
  }
  if (product.activated.pointer.index < 0) return;
  record.kernel.attributes.set("activated", true);
  record.args.push_back(product.activated.pointer);
  record.args.push_back(Lowering::integer(product.activated.stride));
}

void add_experts(ir::Record& record, const Product& product) {
  record.kernel.attributes.set("block_rows", kBlockRows);
  record.kernel.attributes.set("experts", true);
  record.args.push_back(product.experts->starts);
  record.args.push_back(Lowering::integer(product.experts->count));
}

}  // namespace

void set_rows(Lowering& lowering, Product& product, ir::Value value) {
  const Lowering::ProductRows rows = lowering.product_rows(value);
  product.real = rows.mask;
  product.fills = rows.zeros && product.form != "tn";
}

void lower_product(Lowering& lowering, const Product& product) {
  const int64_t bytes = element_bytes(lowering), depth = depth_block(lowering);
  const Dim n = product.n;
  const bool gradient = product.form == "tn";
  const Cut cut = gradient           ? cut_weight_gradient(product)
                  : product.experts ? cut_by_expert(product)
                                    : cut_forward(product);
  const int64_t block_columns = kStripColumns * (gradient ? kGradientStrips : kBlockStrips);
  const bool in_parts = !product.experts && !(cut.parts == Dim(1));
  const ir::Arg out = in_parts ? lowering.temporary("parts", product.m * n * cut.greatest_parts * Dim(bytes))
                               : product.c.pointer;

  ir::Record record;
  record.kernel = {
      "product",
      {{"f", lowering.real_name()}, {"form", product.form}, {"depth", depth}, {"columns", block_columns}}};
  record.tasks = cut.row_blocks * cut.column_blocks * cut.parts;
  record.args = {out, product.a.pointer, product.b.pointer, product.bias};
  for (const Dim& number : {product.m, n, product.k, Dim(product.c.stride), Dim(product.a.stride),
                            Dim(product.b.stride), in_parts ? Dim(0) : product.accumulate, cut.row_blocks,
                            cut.column_blocks, cut.parts, product.m * n}) {
    record.args.push_back(Lowering::integer(number));
  }
  if (has_epilogue(product)) add_epilogue(record, product);
  if (product.experts) add_experts(record, product);
  if (product.real.index >= 0) {
    record.kernel.attributes.set("mask", true);
    if (product.fills) record.kernel.attributes.set("fill", true);
    record.args.push_back(product.real);
  }
  record.scratch = scratch_bytes(cut, depth, block_columns, bytes);
  record.flops = Dim(2) * product.m * n * product.k;
  record.bytes = (product.m * product.k + product.k * n + product.m * n) * Dim(bytes);
  lowering.call(std::move(record));
  if (in_parts)
    lower_add_parts(lowering, product.c.pointer, out, false, product.m * n, cut.parts, product.accumulate);
}

void lower_column_sum(Lowering& lowering, const ir::Attributes& attributes, ir::Arg out, const Location& dy,
                      const Dim& rows, const Dim& greatest_rows, const Dim& accumulate) {
  const std::vector<int64_t> cancelled =
      attributes.has("cancelled") ? attributes.list("cancelled") : std::vector<int64_t>{0, 0};
  const int64_t bytes = element_bytes(lowering);
  const int64_t stripes = ceiling(dy.width, 64);
  const int64_t least_parts = ceiling(8, stripes);
  auto parts_of = [&](const Dim& count) { return min(ceildiv(count, kPartDepth), Dim(least_parts)); };
  const Dim parts = least_parts == 1 ? Dim(1) : parts_of(rows);
  const bool in_parts = !(parts == Dim(1));
  const ir::Arg target =
      in_parts ? lowering.temporary("parts", parts_of(greatest_rows) * Dim(dy.width * 8)) : out;

  ir::Record record;
  record.kernel = {"column_sum", {{"f", lowering.real_name()}, {"parts", in_parts}}};
  record.tasks = parts * Dim(stripes);
  record.args = {target, dy.pointer};
  for (const Dim& number : {rows, Dim(dy.width), Dim(dy.stride), accumulate, Dim(stripes), parts,
                            Dim(cancelled[0]), Dim(cancelled[1])}) {
    record.args.push_back(Lowering::integer(number));
  }
  record.flops = rows * Dim(dy.width);
  record.bytes = rows * Dim(dy.width * bytes);
  lowering.call(std::move(record));
  if (in_parts) lower_add_parts(lowering, out, target, true, dy.width, parts, accumulate);
}

}  // namespace tfc::passes
