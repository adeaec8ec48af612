// How a task of a product walks its block: in blocks of depth, and in each over strips of B and tiles of rows.
//
// By tiles: a tile's rows of A stay in the first-level cache while the strips of B, packed one after the other, stream
// from the second level. What the next block reads is fetched by the tiles of this one where they are tall (32 vector
// registers); short ones have no instructions to spare, and there packing a strip fetches the next one.
// By strips: form tn with 16 registers. All columns of A are packed first, and a panel of B, half of the first-level
// cache, stays while all tiles pass over it: in place its rows would fall on few sets of that cache.
#include "codegen/kernels/product_emitter.h"

#include <tuple>

namespace tfc::codegen {

namespace {

// Addresses this far apart share a set of a first-level cache (32 KB, 8 ways), or one of two.
constexpr int64_t kCachePeriod = 2048, kCacheWays = 8;

}  // namespace

Range RowTiles::tile(KernelBuilder& k, Val number) const {
  const Val first = all.first + number * low + k.min(number, higher);
  return {first, first + low + k.select(number < higher, k.index(1), k.index(0))};
}

void ProductEmitter::call(llvm::Function* function, std::initializer_list<llvm::Value*> arguments) {
  k.ir().CreateCall(function, llvm::ArrayRef<llvm::Value*>(arguments.begin(), arguments.size()));
}

// -- operands
// -------------------------------------------------------------------------------------------------------

Ptr ProductEmitter::strip_panel(Val strip) { return k.at(panels, strip * (depth_block * shape.columns)); }

/// Rows of a matrix so far apart would all fall on the same few sets of the cache.
Val ProductEmitter::collides(Val ld) { return ld % (kCachePeriod / bytes()) == 0; }

/// The first strip of B that tiles read from a panel: in place they read whole strips of rows that all count.
Val ProductEmitter::first_packed(const Block& block, const Step& step) {
  if (form != "tn" || !shape.fetches) return k.index(0);
  const Val apart = collides(k.integer(kLdb)) | (step.packed != step.depth);
  return k.select(apart, k.index(0), block.columns.size() / shape.columns);
}

/// How many of the rows of A and B there are.
Val ProductEmitter::real_depth(Val d, Val depth) {
  if (!sums_real_rows()) return depth;
  const Ptr real = mask();
  Var count = k.var(k.index(0));
  k.loop("real", d, d + depth, 1,
         [&](Val row) { count.set(count.get() + k.select(k.load(real, row) != 0, k.index(1), k.index(0))); });
  return count.get();
}

void ProductEmitter::pack_rows(int width, Ptr source, Val ld, Ptr to, Val columns, const Step& step) {
  const auto all = [&] {
    call(pack_rows_function(k, width), {source.base, ld.raw(), to.base, columns.raw(), step.depth.raw()});
  };
  if (!sums_real_rows()) return all();
  k.if_(step.packed == step.depth, all, [&] {
    call(pack_real_rows_function(k, width), {source.base, ld.raw(), to.base, columns.raw(), step.depth.raw(),
                                             k.at(mask(), step.d).base});
  });
}

void ProductEmitter::pack_strip(const Block& block, const Step& step, Val strip, Ptr to) {
  const Val ldb = k.integer(kLdb);
  const Val first = block.columns.first + strip * shape.columns, columns = block.columns.last - first;
  if (form == "nt") {
    call(pack_transposed_function(k, shape.columns),
         {k.at(block.b, first * ldb + step.d).base, ldb.raw(), to.base,
          k.min(columns, k.index(shape.columns)).raw(), step.depth.raw()});
  } else {
    pack_rows(shape.columns, k.at(block.b, step.d * ldb + first), ldb, to, columns, step);
  }
}

/// A strip of B as tiles read it, and its stride.
std::pair<llvm::Value*, Val> ProductEmitter::strip_of_b(const Block& block, const Step& step, Val strip) {
  if (form == "nt") return {strip_panel(strip).base, k.index(shape.columns)};
  const Val packed = strip >= first_packed(block, step), ldb = k.integer(kLdb);
  const Ptr place = k.at(block.b, step.d * ldb + block.columns.first + strip * shape.columns);
  return {k.ir().CreateSelect(packed.raw(), strip_panel(strip).base, place.base),
          k.select(packed, k.index(shape.columns), ldb)};
}

/// A tile's columns of Y as a panel (form tn).
void ProductEmitter::pack_columns_of_a(const Step& step, Val row, Ptr to) {
  const Val lda = k.integer(kLda);
  pack_rows(shape.panel_rows, k.at(a, step.d * lda + row), lda, to, k.integer(kM) - row, step);
}

/// A tile's rows of A in place, or a copy where they would all fall on the same few sets of the cache.
std::pair<Ptr, Val> ProductEmitter::rows_of_a(Range rows, const Step& step) {
  const Val lda = k.integer(kLda), height = rows.size();
  const Ptr source = k.at(a, rows.first * lda + step.d);
  Var pointer = k.var(k.wrap(source.base)), stride = k.var(lda);
  k.if_(collides(lda) & (height >= kCacheWays / 2), [&] {
    const Val copy_stride = k.index(depth_block + kLanes);
    call(copy_rows_function(k),
         {source.base, lda.raw(), panel.base, height.raw(), step.depth.raw(), copy_stride.raw()});
    pointer.set(k.wrap(panel.base));
    stride.set(copy_stride);
  });
  return {Ptr{pointer.get().raw(), a.element}, stride.get()};
}

// -- what is fetched
// ------------------------------------------------------------------------------------------------

Val ProductEmitter::address(Ptr matrix, Val row, Val column, Val ld) {
  return k.wrap(k.ir().CreatePtrToInt(matrix.base, k.ir().getInt64Ty())) + (row * ld + column) * bytes();
}

ProductStep ProductEmitter::step_of(const Block& block, const Block& following, Val has_following, Val d) {
  Step step;
  step.d = d;
  step.depth = k.min(block.depths.last - d, block.depth_step);
  step.packed = real_depth(d, step.depth);
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
void ProductEmitter::begin_fetching(const Block& block, const Step& step, FetchStream& of_a, FetchStream& of_b) {
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
void ProductEmitter::fetch_next_rows(const Block& block, const Step& step, Val tile, Range rows, FetchStream& of_a) {
  const Val last = tile + 1 == block.rows.count, lda = k.integer(kLda);
  of_a.along_depth(
      address(a, k.select(last, step.next_row, rows.last), k.select(last, step.next_d, step.d), lda),
      lda * bytes(), k.select(last & !step.any, k.index(0), rows.size()), block.strips);
}

// -- the walk
// -------------------------------------------------------------------------------------------------------

void ProductEmitter::call_tile(const Block& block, const Step& step, Range rows, Val strip,
                               const TileOperands& operands) {
  const Ptr table{tile_table(k, operands.form), k.ir().getPtrTy()};
  llvm::FunctionType* type = tile_function(k, operands.form, 1)->getFunctionType();
  llvm::Value* function = k.load(table, rows.size() - 1).raw();
  const Val begins = (step.d == block.depths.first) & (k.integer(kAccumulate) == 0), ldc = k.integer(kLdc);
  const Val offset = strip * shape.columns;
  const Ptr target = k.at(block.out, rows.first * ldc + block.columns.first + offset);
  llvm::Value* begin = k.ir().CreateSelect(begins.raw(), k.at(start, offset).base,
                                           llvm::ConstantPointerNull::get(k.ir().getPtrTy()));
  k.ir().CreateCall(type, function,
                    {operands.left.base, operands.lda.raw(), operands.right, operands.ldb.raw(), target.base,
                     ldc.raw(), begin, step.packed.raw(), (block.columns.size() - offset).raw(), fetch.base});
}

void ProductEmitter::tile_with_strips(const Block& block, const Step& step, Val tile, Range rows, FetchStream& of_a,
                                      FetchStream& of_b) {
  TileOperands operands{LeftOperand::Rows, panel, k.index(0), nullptr, {}};
  if (form == "tn") {
    operands.form = LeftOperand::Panel;
    pack_columns_of_a(step, rows.first, panel);
  } else {
    if (shape.fetches) fetch_next_rows(block, step, tile, rows, of_a);
    std::tie(operands.left, operands.lda) = rows_of_a(rows, step);
  }
  k.loop("strip", block.strips, [&](Val strip) {
    std::tie(operands.right, operands.ldb) = strip_of_b(block, step, strip);
    if (shape.fetches) {
      of_a.next();
      of_b.next();
    }
    call_tile(block, step, rows, strip, operands);
  });
}

void ProductEmitter::walk_by_tiles(const Block& block, const Step& step, FetchStream& of_a, FetchStream& of_b) {
  if (shape.fetches) begin_fetching(block, step, of_a, of_b);
  k.loop("pack", first_packed(block, step), block.strips, 1,
         [&](Val strip) { pack_strip(block, step, strip, strip_panel(strip)); });
  k.loop("tile", block.rows.count, [&](Val tile) {
    const Range rows = block.rows.tile(k, tile);
    where_real(block, rows, [&] {
      tile_with_strips(block, step, tile, rows, of_a, of_b);
      finish(block, step, rows);
    });
  });
}

/// Form tn: one strip's panel of B, and after it the panels of A of all tiles.
void ProductEmitter::walk_by_strips(const Block& block, const Step& step) {
  const auto panel_of_a = [&](Val tile) {
    return k.at(panels, depth_block * shape.columns + tile * (depth_block * shape.panel_rows));
  };
  k.loop("columns", block.rows.count, [&](Val tile) {
    pack_columns_of_a(step, block.rows.tile(k, tile).first, panel_of_a(tile));
  });
  k.loop("strip", block.strips, [&](Val strip) {
    pack_strip(block, step, strip, panels);
    k.loop("tile", block.rows.count, [&](Val tile) {
      call_tile(block, step, block.rows.tile(k, tile), strip,
                {LeftOperand::Panel, panel_of_a(tile), k.index(0), panels.base, k.index(shape.columns)});
    });
  });
}

void ProductEmitter::multiply_blocks(const Block& block, Val number) {
  where_real(block, block.rows.all, [&] { multiply_real_blocks(block, number); });
}

void ProductEmitter::multiply_real_blocks(const Block& block, Val number) {
  // An expert's task knows its rows only when it has looked for them: nothing is fetched for the next one.
  const Block following = by_expert ? block : block_of(number + 1);
  const Val has_following = by_expert ? k.index(1) < k.index(0) : number + 1 < k.tasks_end();
  FetchStream of_a(k, fetch, 0), of_b(k, fetch, 1);
  k.loop("depths", block.depths.first, block.depths.last, block.depth_step, [&](Val d) {
    const Step step = step_of(block, following, has_following, d);
    if (form == "tn" && !shape.fetches) return walk_by_strips(block, step);
    walk_by_tiles(block, step, of_a, of_b);
  });
}

}  // namespace tfc::codegen
