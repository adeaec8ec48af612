// Matrix products C[M,N] (+)= A B, in three forms:
//   nt  A [M,K], B = W^T with W [N,K]   a layer forward: x W^T + b
//   nn  A [M,K], B [K,N]                its input's gradient: dy W
//   tn  A = Y^T with Y [K,M], B [K,N]   its weight's gradient: dy^T x
//
// A task is a block of C, a few hundred rows by a few strips of columns, cut by the shapes alone. It walks K
// in blocks: the strips' part of B is packed into panels (transposed on the way in form nt, so that a weight
// needs no second layout), then row tile by row tile multiplies them from cache (Goto, van de Geijn 2008,
// with the loops over B and A exchanged: a tile's rows of A stay in the first-level cache while the panels of
// B stream from the second).
//
// An element of C is a chain of fma over ascending k in each block, and the blocks' sums are added in their
// order, whatever the tile's height and the task: a row alone has the same bits as in a batch. Sums in blocks
// also keep the error of long reductions small, such as one over a vocabulary.
// A few rows of form nt go past the panels (product_few_rows.h), with the same bits.
#include "codegen/kernels/product.h"

#include <optional>

#include "codegen/activations.h"
#include "codegen/dropout.h"
#include "codegen/kernels/product_few_rows.h"
#include "codegen/kernels/product_tile.h"

namespace tfc::codegen {

namespace {

// As passes/lower/product_plan.h, which sizes tasks and scratch.
constexpr int64_t kStripColumns = 32;  // unit of column blocks; a multiple of every tile's width

// Addresses this far apart share a set of a first-level cache (32 KB, 8 ways), or one of two.
constexpr int64_t kCachePeriod = 2048, kCacheWays = 8;

enum Slot {
  kC,
  kA,
  kB,
  kBias,
  kM,
  kN,
  kK,
  kLdc,
  kLda,
  kLdb,
  kAccumulate,
  kRowBlocks,
  kColumnBlocks,
  kParts,
  kPartStride,
  kOut,
  kLdOut,
  kResidual,
  kLdResidual,  // with an epilogue only
  kDropoutKeys,
  kDropoutPlace  // with dropout only
};

/// Rows in tiles of nearly equal height, the last the lowest: 128 rows are 9 x 13 + 11, not 9 x 14 + 2.
struct RowTiles {
  Range all;
  Val count, height;
};

/// What a task computes.
struct Block {
  Range columns, depths;
  RowTiles rows;
  Val strips;  // of a tile's width in the columns
  Ptr out;     // where this part of K goes
};

struct ProductEmitter {
  KernelBuilder& k;
  std::string form;
  int64_t depth_block;
  int64_t block_columns;  // greatest number of columns of a task
  std::string activation, slope;
  std::optional<double> residual_scale;
  std::optional<Dropout> dropout;
  TileShape shape;

  Ptr start, panels, panel_a;  // scratch
  Ptr a, b, c;

  ProductEmitter(KernelBuilder& builder, const ir::KernelSpec& spec)
      : k(builder),
        form(spec.attributes.text("form")),
        depth_block(spec.attributes.integer("depth")),
        block_columns(spec.attributes.integer("columns")),
        activation(spec.attributes.text("activation", "")),
        slope(spec.attributes.text("slope", "")),
        shape(tile_shape(k.target(), k.real())) {
    if (spec.attributes.has("residual")) residual_scale = spec.attributes.real("residual");
    if (spec.attributes.has("dropout")) dropout.emplace(k, spec.attributes.real("dropout"));
    a = k.pointer(kA), b = k.pointer(kB), c = k.pointer(kC);
    start = k.scratch(k.real());
    panels = k.at(start, k.index(block_columns));
    panel_a = k.at(panels, k.index(depth_block * block_columns + shape.lanes * shape.columns));
  }

  void call(llvm::Function* function, std::initializer_list<llvm::Value*> arguments) {
    k.ir().CreateCall(function, llvm::ArrayRef<llvm::Value*>(arguments.begin(), arguments.size()));
  }

  /// What every row begins with: the bias, or zeros.
  void fill_start(Range columns) {
    k.zero(start, k.index(block_columns));
    const Ptr bias = k.pointer(kBias);
    k.if_(!k.is_null(bias), [&] {
      k.vector_loop("bias", columns.size(),
                    [&](Lane lane) { k.store(start, lane, k.load(k.at(bias, columns.first), lane)); });
    });
  }

  Ptr panel(Val strip) { return k.at(panels, strip * (depth_block * shape.columns)); }

  /// From a block of depth to the next, where there is one.
  Val ahead(const Block& block, Val d, Val depth, Val ld) {
    return k.select(d + depth < block.depths.last, depth * ld, k.index(0));
  }

  void pack_b(const Block& block, Val d, Val depth) {
    const Range& columns = block.columns;
    const Val ldb = k.integer(kLdb), strips = block.strips;
    if (form != "nt") {
      call(pack_rows_function(k, shape.columns),
           {k.at(b, d * ldb + columns.first).base, ldb.raw(), panels.base, columns.size().raw(), depth.raw(),
            strips.raw(), k.index(shape.columns).raw(), k.index(depth_block * shape.columns).raw(),
            ahead(block, d, depth, ldb).raw()});
      return;
    }
    k.loop("pack", strips, [&](Val strip) {
      const Val first = columns.first + strip * shape.columns;
      const Val width = k.min(columns.last - first, k.index(shape.columns));
      call(pack_transposed_function(k, shape.columns),
           {k.at(b, first * ldb + d).base, ldb.raw(), panel(strip).base, width.raw(), depth.raw()});
    });
  }

  /// All of the block's columns of Y as panels of rows of A (form tn).
  void pack_a(const Block& block, Val d, Val depth) {
    const RowTiles& rows = block.rows;
    const Val lda = k.integer(kLda);
    call(pack_rows_function(k, shape.panel_rows),
         {k.at(a, d * lda + rows.all.first).base, lda.raw(), panel_a.base,
          (k.integer(kM) - rows.all.first).raw(), depth.raw(), rows.count.raw(), rows.height.raw(),
          k.index(depth_block * shape.panel_rows).raw(), ahead(block, d, depth, lda).raw()});
  }

  /// Tile `tile`'s part of A in place, or a copy where its rows would all fall on the same few sets of the
  /// cache.
  std::pair<Ptr, Val> rows_of_a(Val row, Val height, Val d, Val depth) {
    const Val lda = k.integer(kLda);
    const Ptr source = k.at(a, row * lda + d);
    const int64_t period = kCachePeriod / ir::dtype_bytes(k.real());
    Var pointer = k.var(k.wrap(source.base)), stride = k.var(lda);
    k.if_((lda % period == 0) & (height >= kCacheWays / 2), [&] {
      const Val copy_stride = k.index(depth_block + kLanes);
      call(copy_rows_function(k),
           {source.base, lda.raw(), panel_a.base, height.raw(), depth.raw(), copy_stride.raw()});
      pointer.set(k.wrap(panel_a.base));
      stride.set(copy_stride);
    });
    return {Ptr{pointer.get().raw(), a.element}, stride.get()};
  }

  void multiply_tile(const Block& block, Val tile, Val row, Val height, Val d, Val depth, Val begins) {
    const LeftOperand operand = form == "tn" ? LeftOperand::Panel : LeftOperand::Rows;
    const auto [rows, stride] =
        operand == LeftOperand::Panel
            ? std::pair{k.at(panel_a, tile * (depth_block * shape.panel_rows)), k.index(0)}
            : rows_of_a(row, height, d, depth);
    const Ptr table{tile_table(k, operand), k.ir().getPtrTy()};
    llvm::FunctionType* type = tile_function(k, operand, 1)->getFunctionType();
    llvm::Value* function = k.load(table, height - 1).raw();
    const Val ldc = k.integer(kLdc), lda = k.integer(kLda);
    const Val last = tile + 1 == block.rows.count;  // then the first of the next block of depth
    const Ptr next = k.at(a, k.select(last, block.rows.all.first, row + height) * lda + k.select(last, d + depth, d));
    k.loop("strip", block.strips, [&](Val strip) {
      const Val offset = strip * shape.columns;
      const Ptr target = k.at(block.out, row * ldc + block.columns.first + offset);
      llvm::Value* begin = k.ir().CreateSelect(begins.raw(), k.at(start, offset).base,
                                               llvm::ConstantPointerNull::get(k.ir().getPtrTy()));
      k.ir().CreateCall(type, function,
                        {rows.base, stride.raw(), panel(strip).base, target.base, ldc.raw(), begin,
                         depth.raw(), (block.columns.size() - offset).raw(), next.base, lda.raw()});
    });
  }

  /// What follows the product, on rows that have just been finished and are still in cache.
  void epilogue(const Block& block, Val row, Val height) {
    const Val stream = dropout ? dropout->stream(k.integer(kDropoutPlace), k.index(0)) : Val();
    k.loop("epilogue", row, row + height, 1, [&](Val r) {
      DropoutRow keys;
      if (dropout) keys = dropout->row(k.pointer(kDropoutKeys, ir::DType::I32), r, stream);
      const Ptr sums = k.at(c, r * k.integer(kLdc)), out = k.at(k.pointer(kOut), r * k.integer(kLdOut));
      k.vector_loop("column", block.columns.first, block.columns.last, [&](Lane lane) {
        Val y = k.load(sums, lane);
        if (!activation.empty()) y = activate(activation, y);
        if (dropout) y = dropout->apply(keys, lane, y);
        const auto x = [&] { return k.load(k.at(k.pointer(kResidual), r * k.integer(kLdResidual)), lane); };
        if (!slope.empty()) y = activation_gradient(slope, y, x());
        if (residual_scale) {
          if (*residual_scale != 1.0) y = y * *residual_scale;
          y = x() + y;
        }
        k.store(out, lane, y);
      });
    });
  }

  Block block_of(Val task) {
    const Val column_blocks = k.integer(kColumnBlocks), row_blocks = k.integer(kRowBlocks), n = k.integer(kN);
    const Val number = task % (column_blocks * row_blocks), part = task / (column_blocks * row_blocks);
    const Range units =
        share((n + (kStripColumns - 1)) / kStripColumns, column_blocks, number % column_blocks);
    Block block;
    block.columns = {units.first * kStripColumns, k.min(units.last * kStripColumns, n)};
    block.strips = (block.columns.size() + (shape.columns - 1)) / shape.columns;
    block.rows.all = share(k.integer(kM), row_blocks, number / column_blocks);
    block.rows.count = (block.rows.all.size() + (shape.rows - 1)) / shape.rows;
    block.rows.height = (block.rows.all.size() + (block.rows.count - 1)) / block.rows.count;
    block.depths = share(k.integer(kK), k.integer(kParts), part);
    block.out = k.at(c, part * k.integer(kPartStride));
    return block;
  }

  bool has_epilogue() const { return !activation.empty() || !slope.empty() || residual_scale || dropout; }

  /// The whole block past the panels (form nt).
  void multiply_few_rows(const Block& block) {
    const Val row = block.rows.all.first, height = block.rows.all.size();
    const Ptr table{few_rows_table(k, depth_block), k.ir().getPtrTy()};
    llvm::FunctionType* type = few_rows_function(k, depth_block, 1)->getFunctionType();
    llvm::Value* begin = k.ir().CreateSelect((k.integer(kAccumulate) == 0).raw(), start.base,
                                             llvm::ConstantPointerNull::get(k.ir().getPtrTy()));
    const Val lda = k.integer(kLda), ldb = k.integer(kLdb), ldc = k.integer(kLdc);
    k.ir().CreateCall(type, k.load(table, height - 1).raw(),
                      {k.at(a, row * lda).base, lda.raw(), k.at(b, block.columns.first * ldb).base, ldb.raw(),
                       k.at(c, row * ldc + block.columns.first).base, ldc.raw(), begin,
                       block.columns.size().raw(), k.integer(kK).raw(), panels.base});
    if (has_epilogue()) epilogue(block, row, height);
  }

  void task(Val number) {
    const Block block = block_of(number);
    fill_start(block.columns);
    if (form != "nt") return multiply_blocks(block);
    k.if_(
        block.rows.all.size() <= kFewRows, [&] { multiply_few_rows(block); }, [&] { multiply_blocks(block); });
  }

  void multiply_blocks(const Block& block) {
    k.loop("depths", block.depths.first, block.depths.last, depth_block, [&](Val d) {
      const Val depth = k.min(block.depths.last - d, k.index(depth_block));
      const Val begins = (d == block.depths.first) & (k.integer(kAccumulate) == 0);
      pack_b(block, d, depth);
      if (form == "tn") pack_a(block, d, depth);
      k.loop("tile", block.rows.count, [&](Val tile) {
        const Val row = block.rows.all.first + tile * block.rows.height;
        const Val height = k.min(block.rows.height, block.rows.all.last - row);
        multiply_tile(block, tile, row, height, d, depth, begins);
        if (!has_epilogue()) return;
        k.if_(d + depth == block.depths.last, [&] { epilogue(block, row, height); });
      });
    });
  }
};

/// product {form = nt | nn | tn, depth = k block, columns = greatest columns of a task, activation?, slope?,
/// residual?, dropout?}
/// slots: C, A, B, bias (or null), M, N, K, ldc, lda, ldb, accumulate (1: C += ), row blocks, column blocks,
/// parts, part stride. tasks = row blocks * column blocks * parts; part p of K goes to C + p * part stride.
/// With `activation` (its kind), `slope` (its kind) or `residual` (a factor) also: out, ld of out, x, ld of
/// x. Then out = x + factor * activation(C), each part where it is asked for, or out = activation'(x) * C;
/// out may be C. With `dropout` (a probability) C or activation(C) is dropped first, by two more slots: keys, place.
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
