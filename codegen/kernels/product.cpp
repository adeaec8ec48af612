// Matrix products C[M,N] (+)= A B, in three forms:
//   nt  A [M,K], B = W^T with W [N,K]   a layer forward: x W^T + b
//   nn  A [M,K], B [K,N]                its input's gradient: dy W
//   tn  A = Y^T with Y [K,M], B [K,N]   its weight's gradient: dy^T x
//
// A task is a block of C, a few hundred rows by a few strips of columns, cut by the shapes alone. It walks K
// in blocks; in each, row tile by row tile multiplies the strips' part of B from cache (Goto, van de Geijn
// 2008, with the loops over B and A exchanged: a tile's rows of A stay in the first-level cache while the
// strips of B stream from the second). B is packed into panels first (transposed on the way in form nt, so
// that a weight needs no second layout) and A read in place by rows. Form tn reads B in place, for its rows
// are vectors already, and A from a copy of the tile's columns. What the next block reads is fetched into the
// second-level cache by the tiles of this one (product_fetch.h).
//
// An element of C is a chain of fma over ascending k in each block, and the blocks' sums are added in their
// order, whatever the tile's height and the task: a row alone has the same bits as in a batch. Sums in blocks
// also keep the error of long reductions small, such as one over a vocabulary.
// A few rows of form nt go past the panels (product_few_rows.h), with the same bits.
#include "codegen/kernels/product.h"

#include <optional>

#include "codegen/activations.h"
#include "codegen/dropout.h"
#include "codegen/kernels/product_fetch.h"
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
  kDropoutPlace  // with dropout only; after all of them the mask, if any
};
// Rows by expert: `starts`, experts; they follow what there is of the above.
constexpr int kStarts = 0, kExperts = 1;

/// Rows in tiles of nearly equal height: 128 rows are 8 x 13 + 2 x 12, not 9 x 14 + 2.
struct RowTiles {
  Range all;
  Val count, low, higher;  // heights: of the first `higher` tiles low + 1, of the others low

  Range tile(KernelBuilder& k, Val number) const {
    const Val first = all.first + number * low + k.min(number, higher);
    return {first, first + low + k.select(number < higher, k.index(1), k.index(0))};
  }
};

/// What a task computes.
struct Block {
  Range columns, depths;
  RowTiles rows;
  Val strips;     // of a tile's width in the columns
  Ptr b;          // the expert's, where there are experts
  Val bias_from;  // element of the bias that belongs to column 0
  Ptr out;        // where this part of K goes
};

/// One block of depth of a task, and where the next one begins (in the next task, at the end of this).
struct Step {
  Val d, depth;
  Val calls, lines;                        // of tiles, and the lines of depth that each walks
  Val next_row, next_column, next_d, any;  // any: there is a next one
};

struct ProductEmitter {
  KernelBuilder& k;
  std::string form;
  int64_t depth_block;
  int64_t block_columns;  // greatest number of columns of a task
  std::string activation, slope;
  std::optional<double> residual_scale;
  std::optional<Dropout> dropout;
  bool by_expert;
  int64_t block_rows;  // by expert: greatest number of rows of a task
  TileShape shape;
  bool masked;

  Ptr fetch, start, panels, panel_a;  // scratch
  Ptr a, b, c;

  ProductEmitter(KernelBuilder& builder, const ir::KernelSpec& spec)
      : k(builder),
        form(spec.attributes.text("form")),
        depth_block(spec.attributes.integer("depth")),
        block_columns(spec.attributes.integer("columns")),
        activation(spec.attributes.text("activation", "")),
        slope(spec.attributes.text("slope", "")),
        by_expert(spec.attributes.flag("experts")),
        block_rows(spec.attributes.integer("block_rows", 0)),
        shape(tile_shape(k.target(), k.real())),
        masked(spec.attributes.flag("mask")) {
    if (spec.attributes.has("residual")) residual_scale = spec.attributes.real("residual");
    if (spec.attributes.has("dropout")) dropout.emplace(k, spec.attributes.real("dropout"));
    a = k.pointer(kA), b = k.pointer(kB), c = k.pointer(kC);
    fetch = {k.scratch(k.real()).base, k.ir().getInt64Ty()};
    start = k.at(k.scratch(k.real()), k.index(kFetchStreams * kFetchWords * 8 / bytes()));
    panels = k.at(start, k.index(block_columns));
    panel_a = k.at(panels, k.index(depth_block * block_columns + shape.lanes * shape.columns));
  }

  int64_t bytes() const { return ir::dtype_bytes(k.real()); }

  void call(llvm::Function* function, std::initializer_list<llvm::Value*> arguments) {
    k.ir().CreateCall(function, llvm::ArrayRef<llvm::Value*>(arguments.begin(), arguments.size()));
  }

  /// What every row begins with: the bias, or zeros.
  void fill_start(const Block& block) {
    k.zero(start, k.index(block_columns));
    const Ptr bias = k.pointer(kBias);
    k.if_(!k.is_null(bias), [&] {
      const Ptr first = k.at(bias, block.bias_from + block.columns.first);
      k.vector_loop("bias", block.columns.size(),
                    [&](Lane lane) { k.store(start, lane, k.load(first, lane)); });
    });
  }

  Ptr panel(Val strip) { return k.at(panels, strip * (depth_block * shape.columns)); }

  /// Rows of a matrix so far apart would all fall on the same few sets of the cache.
  Val collides(Val ld) { return ld % (kCachePeriod / bytes()) == 0; }

  /// The first strip of B that tiles read from a panel: in place they read whole strips only.
  Val first_packed(const Block& block) {
    if (form != "tn") return k.index(0);
    return k.select(collides(k.integer(kLdb)), k.index(0), block.columns.size() / shape.columns);
  }

  void pack_b(const Block& block, const Step& step) {
    const Val ldb = k.integer(kLdb);
    k.loop("pack", first_packed(block), block.strips, 1, [&](Val strip) {
      const Val first = block.columns.first + strip * shape.columns, columns = block.columns.last - first;
      if (form == "nt") {
        call(pack_transposed_function(k, shape.columns),
             {k.at(block.b, first * ldb + step.d).base, ldb.raw(), panel(strip).base,
              k.min(columns, k.index(shape.columns)).raw(), step.depth.raw()});
      } else {
        call(pack_rows_function(k, shape.columns), {k.at(block.b, step.d * ldb + first).base, ldb.raw(),
                                                    panel(strip).base, columns.raw(), step.depth.raw()});
      }
    });
  }

  /// A strip of B as tiles read it, and its stride.
  std::pair<llvm::Value*, Val> strip_of_b(const Block& block, const Step& step, Val strip) {
    if (form == "nt") return {panel(strip).base, k.index(shape.columns)};
    const Val packed = strip >= first_packed(block), ldb = k.integer(kLdb);
    const Ptr place = k.at(block.b, step.d * ldb + block.columns.first + strip * shape.columns);
    return {k.ir().CreateSelect(packed.raw(), panel(strip).base, place.base),
            k.select(packed, k.index(shape.columns), ldb)};
  }

  /// The tile's columns of Y as a panel (form tn).
  void pack_a(const Step& step, Val row) {
    const Val lda = k.integer(kLda);
    call(pack_rows_function(k, shape.panel_rows), {k.at(a, step.d * lda + row).base, lda.raw(), panel_a.base,
                                                   (k.integer(kM) - row).raw(), step.depth.raw()});
  }

  /// Tile `tile`'s part of A in place, or a copy where its rows would all fall on the same few sets of the
  /// cache.
  std::pair<Ptr, Val> rows_of_a(Val row, Val height, const Step& step) {
    const Val lda = k.integer(kLda);
    const Ptr source = k.at(a, row * lda + step.d);
    Var pointer = k.var(k.wrap(source.base)), stride = k.var(lda);
    k.if_(collides(lda) & (height >= kCacheWays / 2), [&] {
      const Val copy_stride = k.index(depth_block + kLanes);
      call(copy_rows_function(k),
           {source.base, lda.raw(), panel_a.base, height.raw(), step.depth.raw(), copy_stride.raw()});
      pointer.set(k.wrap(panel_a.base));
      stride.set(copy_stride);
    });
    return {Ptr{pointer.get().raw(), a.element}, stride.get()};
  }

  Val address(Ptr matrix, Val row, Val column, Val ld) {
    return k.wrap(k.ir().CreatePtrToInt(matrix.base, k.ir().getInt64Ty())) + (row * ld + column) * bytes();
  }

  Step step_of(const Block& block, const Block& following, Val has_following, Val d) {
    Step step;
    step.d = d;
    step.depth = k.min(block.depths.last - d, k.index(depth_block));
    step.calls = block.rows.count * block.strips;
    step.lines = (step.depth + (kLineBytes / bytes() - 1)) / (kLineBytes / bytes());
    const Val inside = d + step.depth < block.depths.last;
    step.next_row = k.select(inside, block.rows.all.first, following.rows.all.first);
    step.next_column = k.select(inside, block.columns.first, following.columns.first);
    step.next_d = k.select(inside, d + step.depth, following.depths.first);
    step.any = inside | has_following;
    return step;
  }

  /// The next block's part of B, and in form tn of A.
  void begin_fetching(const Block& block, const Step& step, FetchStream& of_a, FetchStream& of_b) {
    const Val ldb = k.integer(kLdb), lda = k.integer(kLda), none = k.index(0);
    const Val columns = k.select(step.any, block.columns.size(), none);
    if (form == "nt") {
      of_b.along_depth(address(block.b, step.next_column, step.next_d, ldb), ldb * bytes(), columns, step.calls);
    } else {
      of_b.across_depth(address(block.b, step.next_d, step.next_column, ldb), ldb * bytes(), columns * bytes(),
                        step.depth, step.lines, step.calls);
    }
    if (form != "tn") return;
    const Val rows = k.select(step.any, block.rows.all.size(), none);
    of_a.across_depth(address(a, step.next_d, step.next_row, lda), lda * bytes(), rows * bytes(), step.depth,
                      step.lines, step.calls);
  }

  /// The next tile's rows of A, in the last tile those of the next block's first (forms nt and nn).
  void fetch_next_rows(const Block& block, const Step& step, Val tile, Val row, Val height,
                       FetchStream& of_a) {
    const Val last = tile + 1 == block.rows.count, lda = k.integer(kLda);
    of_a.along_depth(
        address(a, k.select(last, step.next_row, row + height), k.select(last, step.next_d, step.d), lda),
        lda * bytes(), k.select(last & !step.any, k.index(0), height), block.strips);
  }

  void multiply_tile(const Block& block, const Step& step, Val tile, Val row, Val height, FetchStream& of_a,
                     FetchStream& of_b) {
    const LeftOperand operand = form == "tn" ? LeftOperand::Panel : LeftOperand::Rows;
    if (form == "tn") {
      pack_a(step, row);
    } else {
      fetch_next_rows(block, step, tile, row, height, of_a);
    }
    const auto [rows, stride] = form == "tn" ? std::pair{panel_a, k.index(0)} : rows_of_a(row, height, step);
    const Ptr table{tile_table(k, operand), k.ir().getPtrTy()};
    llvm::FunctionType* type = tile_function(k, operand, 1)->getFunctionType();
    llvm::Value* function = k.load(table, height - 1).raw();
    const Val begins = (step.d == block.depths.first) & (k.integer(kAccumulate) == 0), ldc = k.integer(kLdc);
    k.loop("strip", block.strips, [&](Val strip) {
      const Val offset = strip * shape.columns;
      const Ptr target = k.at(block.out, row * ldc + block.columns.first + offset);
      llvm::Value* begin = k.ir().CreateSelect(begins.raw(), k.at(start, offset).base,
                                               llvm::ConstantPointerNull::get(k.ir().getPtrTy()));
      const auto [right, ldb] = strip_of_b(block, step, strip);
      of_a.next();
      of_b.next();
      k.ir().CreateCall(type, function,
                        {rows.base, stride.raw(), right, ldb.raw(), target.base, ldc.raw(), begin,
                         step.depth.raw(), (block.columns.size() - offset).raw(), fetch.base});
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

  /// A block of columns, and part `part` of K.
  Block columns_of(Val column_block, Val part) {
    const Val n = k.integer(kN);
    const Range units =
        share((n + (kStripColumns - 1)) / kStripColumns, k.integer(kColumnBlocks), column_block);
    Block block;
    block.columns = {units.first * kStripColumns, k.min(units.last * kStripColumns, n)};
    block.strips = (block.columns.size() + (shape.columns - 1)) / shape.columns;
    block.b = b;
    block.bias_from = k.index(0);
    block.out = k.at(c, part * k.integer(kPartStride));
    return block;
  }

  void set_rows(Block& block, Range rows) {
    block.rows.all = rows;
    block.rows.count = (rows.size() + (shape.rows - 1)) / shape.rows;
    block.rows.low = rows.size() / block.rows.count;
    block.rows.higher = rows.size() % block.rows.count;
  }

  Block block_of(Val task) {
    const Val column_blocks = k.integer(kColumnBlocks), row_blocks = k.integer(kRowBlocks);
    const Val number = task % (column_blocks * row_blocks), part = task / (column_blocks * row_blocks);
    Block block = columns_of(number % column_blocks, part);
    set_rows(block, share(k.integer(kM), row_blocks, number / column_blocks));
    block.depths = by_expert ? rows_of_expert(k, expert_slot(kStarts), part)
                             : share(k.integer(kK), k.integer(kParts), part);
    return block;
  }

  /// Block number `number` of rows by expert: each expert's rows make blocks of nearly equal height, and what
  /// belongs to none comes last.
  void task_by_expert(Val task) {
    const Val column_blocks = k.integer(kColumnBlocks), experts = k.integer(expert_slot(kExperts));
    Var expert = k.var(experts), left = k.var(task / column_blocks), within = k.var(left.get()),
        blocks = k.var(k.index(1));
    k.loop("expert", experts, [&](Val e) {
      const Val count = (rows_of_expert(k, expert_slot(kStarts), e).size() + (block_rows - 1)) / block_rows;
      const Val found = (left.get() >= 0) & (left.get() < count);
      expert.set(k.select(found, e, expert.get()));
      within.set(k.select(found, left.get(), within.get()));
      blocks.set(k.select(found, count, blocks.get()));
      left.set(left.get() - count);
    });
    Block block = columns_of(task % column_blocks, k.index(0));
    k.if_(
        expert.get() < experts,
        [&] {
          const Range rows = rows_of_expert(k, expert_slot(kStarts), expert.get());
          const Range part = share(rows.size(), blocks.get(), within.get());
          set_rows(block, {rows.first + part.first, rows.first + part.last});
          block.depths = {k.index(0), k.integer(kK)};
          block.b = k.at(b, expert.get() * (k.integer(kN) * k.integer(kK)));
          block.bias_from = expert.get() * k.integer(kN);
          run(block, task);
        },
        [&] { zero_block(block, left.get()); });
  }

  /// The rows that belong to no expert, block `number` of them; past the last there are none.
  void zero_block(const Block& block, Val number) {
    const Ptr starts = k.pointer(expert_slot(kStarts), ir::DType::I32);
    const Val first = k.to_index(k.load(starts, k.integer(expert_slot(kExperts)))) + number * block_rows;
    k.loop("rest", first, k.min(first + block_rows, k.integer(kM)), 1, [&](Val row) {
      k.zero(k.at(c, row * k.integer(kLdc) + block.columns.first), block.columns.size());
      if (has_epilogue())
        k.zero(k.at(k.pointer(kOut), row * k.integer(kLdOut) + block.columns.first), block.columns.size());
    });
  }

  bool has_epilogue() const { return !activation.empty() || !slope.empty() || residual_scale || dropout; }
  int expert_slot(int slot) const {
    return (dropout ? kDropoutPlace + 1 : has_epilogue() ? kLdResidual + 1 : kOut) + slot;
  }

  /// The whole block past the panels (form nt).
  void multiply_few_rows(const Block& block) {
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
    if (has_epilogue()) epilogue(block, row, height);
  }

  void task(Val number) {
    if (by_expert && form != "tn") return task_by_expert(number);
    const Block block = block_of(number);
    if (by_expert) zero_without_rows(block);
    run(block, number);
  }

  /// Form tn: what an expert without rows leaves.
  void zero_without_rows(const Block& block) {
    k.if_((block.depths.size() == 0) & (k.integer(kAccumulate) == 0), [&] {
      k.loop("zero", block.rows.all.first, block.rows.all.last, 1, [&](Val row) {
        k.zero(k.at(block.out, row * k.integer(kLdc) + block.columns.first), block.columns.size());
      });
    });
  }

  void run(const Block& block, Val number) {
    fill_start(block);
    if (form != "nt") return multiply_blocks(block, number);
    k.if_(
        block.rows.all.size() <= kFewRows, [&] { multiply_few_rows(block); },
        [&] { multiply_blocks(block, number); });
  }

  /// Is one of the rows asked for? (Never by expert.)
  Val any_real(Val row, Val height) {
    const Ptr mask = k.pointer(expert_slot(0), ir::DType::U8);
    Var any = k.var(k.constant(ir::DType::U8, 0));
    k.loop("any", row, row + height, 1, [&](Val r) { any.set(any.get() | k.load(mask, r)); });
    return any.get() != 0;
  }
  void where_real(Val row, Val height, const std::function<void()>& body) {
    if (!masked) return body();
    k.if_(any_real(row, height), body);
  }

  void multiply_blocks(const Block& block, Val number) {
    where_real(block.rows.all.first, block.rows.all.size(), [&] { multiply_real_blocks(block, number); });
  }

  void multiply_real_blocks(const Block& block, Val number) {
    // An expert's task knows its rows only when it has looked for them: nothing is fetched for the next one.
    const Block following = by_expert ? block : block_of(number + 1);
    const Val has_following = by_expert ? k.index(1) < k.index(0) : number + 1 < k.tasks_end();
    FetchStream of_a(k, fetch, 0), of_b(k, fetch, 1);
    k.loop("depths", block.depths.first, block.depths.last, depth_block, [&](Val d) {
      const Step step = step_of(block, following, has_following, d);
      begin_fetching(block, step, of_a, of_b);
      pack_b(block, step);
      k.loop("tile", block.rows.count, [&](Val tile) {
        const Range rows = block.rows.tile(k, tile);
        const Val row = rows.first, height = rows.size();
        where_real(row, height, [&] {
          multiply_tile(block, step, tile, row, height, of_a, of_b);
          if (!has_epilogue()) return;
          k.if_(d + step.depth == block.depths.last, [&] { epilogue(block, row, height); });
        });
      });
    });
  }
};

/// product {form = nt | nn | tn, depth = k block, columns = greatest columns of a task, activation?, slope?,
/// residual?, dropout?, mask?, experts?, block_rows}
/// slots: C, A, B, bias (or null), M, N, K, ldc, lda, ldb, accumulate (1: C += ), row blocks, column blocks,
/// parts, part stride. tasks = row blocks * column blocks * parts; part p of K goes to C + p * part stride.
/// With `activation` (its kind), `slope` (its kind) or `residual` (a factor) also: out, ld of out, x, ld of
/// x. Then out = x + factor * activation(C), each part where it is asked for, or out = activation'(x) * C;
/// out may be C. With `dropout` (a probability) C or activation(C) is dropped first, by two more slots: keys, place.
/// mask: and last u8 [M]; tiles without a row whose mask is 1 are left alone (not in form tn).
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
