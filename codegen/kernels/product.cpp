// Matrix products C[M,N] (+)= A B, in three forms:
//   nt  A [M,K], B = W^T with W [N,K]   a layer forward: x W^T + b
//   nn  A [M,K], B [K,N]                its input's gradient: dy W
//   tn  A = Y^T with Y [K,M], B [K,N]   its weight's gradient: dy^T x
//
// A task is a block of C, a few hundred rows by a few strips of columns, cut by the shapes alone. It walks K
// in blocks; in each, tiles of rows multiply strips of B from cache (Goto, van de Geijn 2008; product_walk.cpp
// has the two orders of the loops). B is packed into panels (transposed on the way in form nt, so that a
// weight needs no second layout) and A read in place by rows; form tn reads A from a copy of the tile's
// columns.
//
// An element of C is a chain of fma over ascending k in each block, and the blocks' sums are added in their
// order, whatever the tile's height and the task: a row alone has the same bits as in a batch. Sums in blocks
// also keep the error of long reductions small, such as one over a vocabulary.
// A few rows of form nt go past the panels (product_few_rows.h), with the same bits.
#include "codegen/kernels/product_emitter.h"
#include "codegen/kernels/product_few_rows.h"

namespace tfc::codegen {

namespace {

// As passes/lower/product_plan.h, which sizes tasks and scratch.
constexpr int64_t kStripColumns = 32;  // unit of column blocks; a multiple of every tile's width
constexpr int64_t kPanelRows = 16;     // as wide as a panel of A may be, and more rows than a tile has

}  // namespace

ProductEmitter::ProductEmitter(KernelBuilder& builder, const ir::KernelSpec& spec)
    : k(builder),
      form(spec.attributes.text("form")),
      depth_block(spec.attributes.integer("depth")),
      block_columns(spec.attributes.integer("columns")),
      activation(spec.attributes.text("activation", "")),
      slope(spec.attributes.text("slope", "")),
      by_expert(spec.attributes.flag("experts")),
      block_rows(spec.attributes.integer("block_rows", 0)),
      has_gamma(spec.attributes.flag("gamma")),
      others(static_cast<int>(spec.attributes.integer("others", 0))),
      has_activated(spec.attributes.flag("activated")),
      shape(tile_shape(k.target(), k.real())),
      masked(spec.attributes.flag("mask")),
      fills(spec.attributes.flag("fill")) {
  if (spec.attributes.has("residual")) residual_scale = spec.attributes.real("residual");
  if (spec.attributes.has("dropout")) dropout.emplace(k, spec.attributes.real("dropout"));
  a = k.pointer(kA), b = k.pointer(kB), c = k.pointer(kC);
  fetch = {k.scratch(k.real()).base, k.ir().getInt64Ty()};
  start = k.at(k.scratch(k.real()), k.index(kFetchStreams * kFetchWords * 8 / bytes()));
  panel = k.at(start, k.index(block_columns));
  panels = k.at(panel, k.index(kPanelRows * (depth_block + kPanelRows)));
}

void ProductEmitter::fill_start(const Block& block) {
  k.zero(start, k.index(block_columns));
  const Ptr bias = k.pointer(kBias);
  k.if_(!k.is_null(bias), [&] {
    const Ptr first = k.at(bias, block.bias_from + block.columns.first);
    k.vector_loop("bias", block.columns.size(),
                  [&](Lane lane) { k.store(start, lane, k.load(first, lane)); });
  });
}

ProductBlock ProductEmitter::columns_of(Val column_block, Val part) {
  const Val n = k.integer(kN);
  const Range units =
      share((n + (kStripColumns - 1)) / kStripColumns, k.integer(kColumnBlocks), column_block);
  Block block;
  block.columns = {units.first * kStripColumns, k.min(units.last * kStripColumns, n)};
  block.strips = strips_of(block.columns);
  block.b = b;
  block.bias_from = k.index(0);
  block.out = k.at(c, part * k.integer(kPartStride));
  return block;
}

void ProductEmitter::set_rows(Block& block, Range rows) {
  block.rows.all = rows;
  block.rows.count = (rows.size() + (shape.rows - 1)) / shape.rows;
  block.rows.low = rows.size() / block.rows.count;
  block.rows.higher = rows.size() % block.rows.count;
}

void ProductEmitter::set_depths(Block& block, Range depths) {
  block.depths = depths;
  block.depth_step = depth_step(k, depths.size(), depth_block);
}

ProductBlock ProductEmitter::block_of(Val task) {
  const Val column_blocks = k.integer(kColumnBlocks), row_blocks = k.integer(kRowBlocks);
  const Val number = task % (column_blocks * row_blocks), part = task / (column_blocks * row_blocks);
  Block block = columns_of(number % column_blocks, part);
  set_rows(block, share(k.integer(kM), row_blocks, number / column_blocks));
  set_depths(block, by_expert ? rows_of_expert(k, expert_slot(kStarts), part)
                              : share(k.integer(kK), k.integer(kParts), part));
  return block;
}

void ProductEmitter::multiply_few_rows(const Block& block) {
  const Val row = block.rows.all.first, height = block.rows.all.size();
  const Ptr table{few_rows_table(k, depth_block), k.ir().getPtrTy()};
  llvm::FunctionType* type = few_rows_function(k, depth_block, 1)->getFunctionType();
  llvm::Value* begin = k.ir().CreateSelect((k.integer(kAccumulate) == 0).raw(), start.base,
                                           llvm::ConstantPointerNull::get(k.ir().getPtrTy()));
  const Val lda = k.integer(kLda), ldb = k.integer(kLdb), ldc = k.integer(kLdc);
  k.ir().CreateCall(type, k.load(table, height - 1).raw(),
                    {k.at(a, row * lda).base, lda.raw(), k.at(block.b, block.columns.first * ldb).base, ldb.raw(),
                     k.at(c, row * ldc + block.columns.first).base, ldc.raw(), begin,
                     block.columns.size().raw(), k.integer(kK).raw(), panels.base});
  if (has_epilogue()) epilogue(block, block.rows.all);
}

/// Form tn with tall tiles: no more strips at a time than their panels leave room for in the second-level cache.
void ProductEmitter::multiply_columns(const Block& block, Val number) {
  constexpr int64_t together = 12 * kStripColumns;
  k.loop("columns", block.columns.first, block.columns.last, together, [&](Val first) {
    Block part = block;
    part.columns = {first, k.min(first + together, block.columns.last)};
    part.strips = strips_of(part.columns);
    multiply_blocks(part, number);
  });
}

void ProductEmitter::run(const Block& block, Val number) {
  fill_start(block);
  if (form == "tn" && shape.fetches) return multiply_columns(block, number);
  if (form != "nt") return multiply_blocks(block, number);
  k.if_(
      block.rows.all.size() <= kFewRows, [&] { multiply_few_rows(block); },
      [&] { multiply_blocks(block, number); });
}

void ProductEmitter::task(Val number) {
  if (by_expert && form != "tn") return task_by_expert(number);
  const Block block = block_of(number);
  if (by_expert) zero_without_rows(block);
  run(block, number);
}

namespace {

/// product {form = nt | nn | tn, depth = k block, columns = greatest columns of a task, activation?, slope?,
/// residual?, dropout?, mask?, fill?, gamma?, others?, activated?, experts?, block_rows}
/// slots: C, A, B, bias (or null), M, N, K, ldc, lda, ldb, accumulate (1: C += ), row blocks, column blocks,
/// parts, part stride. tasks = row blocks * column blocks * parts; part p of K goes to C + p * part stride.
/// With `activation` (its kind), `slope` (its kind) or `residual` (a factor) also: out, ld of out, x, ld of
/// x. Then out = x + factor * activation(C), each part where it is asked for, or out = activation'(x) * C;
/// out may be C. With `dropout` (a probability) C or activation(C) is dropped first, by two more slots: keys, place.
/// With `gamma` also a factor for each column, before dropout; with `others` = n the pointers and lds of n other
/// branches: out = x + factor * (others + dropout(gamma * activation(C))). With `slope` and `activated` a pointer and
/// its ld, where the activation of x goes.
/// mask: and last u8 [M]; tiles without a row whose mask is 1 are left alone, or with `fill` become zeros. Form tn: u8
/// [K], and the sums are over those rows alone.
/// With `experts` the rows of A and C (tn: of A and B) are sorted by expert (ir/ops.def), and two slots more follow:
/// starts, experts. Each expert's rows are multiplied by a B of its own, N * K elements after the one before, in blocks
/// of up to block_rows; rows of no expert become zeros. tn: part p is expert p, whose rows are its K.
llvm::Function* emit_product(KernelBuilder& k, const ir::KernelSpec& spec) {
  ProductEmitter emitter(k, spec);
  k.for_tasks([&](Val task) { emitter.task(task); });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> product_kernels() {
  std::vector<KernelFamily> families = column_sum_kernels();
  families.push_back({"product", emit_product});
  return families;
}

}  // namespace tfc::codegen
