// The emitter of product kernels: what its parts share. product.cpp has what a product is and how it is cut into
// tasks, product_walk.cpp how a task walks its block, product_epilogue.cpp what follows, product_experts.cpp rows by
// expert.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "codegen/dropout.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/product_fetch.h"
#include "codegen/kernels/product_tile.h"

namespace tfc::codegen {

/// Arguments of a product kernel.
enum ProductSlot {
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
  kLdResidual,  // these four with an epilogue only
  // As far as there are any: keys and place of dropout, gamma, pointer and ld of each other branch and of what is
  // activated; last the mask.
  kMore
};
// Rows by expert: `starts`, experts; they follow what there is of the above.
inline constexpr int kStarts = 0, kExperts = 1;

/// Rows in tiles of nearly equal height: 128 rows are 8 x 13 + 2 x 12, not 9 x 14 + 2.
struct RowTiles {
  Range all;
  Val count, low, higher;  // heights: of the first `higher` tiles low + 1, of the others low

  Range tile(KernelBuilder& k, Val number) const;
};

/// What a task computes.
struct ProductBlock {
  Range columns, depths;
  Val depth_step;  // the depths are walked in blocks of so many
  RowTiles rows;
  Val strips;     // of a tile's width in the columns
  Ptr b;          // the expert's, where there are experts
  Val bias_from;  // element of the bias that belongs to column 0
  Ptr out;        // where this part of K goes
};

/// One block of depth of a task, and where the next one begins (in the next task, at the end of this).
struct ProductStep {
  Val d, depth;
  Val packed;                              // depth of the panels: without rows that a mask leaves out (form tn)
  Val calls, lines;                        // of tiles, and the lines of depth that each walks
  Val next_row, next_column, next_d, any;  // any: there is a next one
};

/// Operands of one tile: A by rows or as a panel, and a strip of B.
struct TileOperands {
  LeftOperand form;
  Ptr left;
  Val lda;
  llvm::Value* right;
  Val ldb;
};

struct ProductEmitter {
  using Block = ProductBlock;
  using Step = ProductStep;

  KernelBuilder& k;
  std::string form;
  int64_t depth_block;    // greatest block of depth
  int64_t block_columns;  // greatest number of columns of a task
  std::string activation, slope;
  std::optional<double> residual_scale;
  std::optional<Dropout> dropout;
  bool by_expert;
  int64_t block_rows;  // by expert: greatest number of rows of a task
  bool has_gamma;
  int others;
  bool has_activated;
  TileShape shape;
  bool masked;  // a mask says which rows there are: of C, in form tn of A and B
  bool fills;   // the others of C become zeros

  Ptr fetch, start, panels, panel;  // scratch
  Ptr a, b, c;

  ProductEmitter(KernelBuilder& builder, const ir::KernelSpec& spec);

  int64_t bytes() const { return ir::dtype_bytes(k.real()); }
  void task(Val number);
  Val strips_of(Range columns) const { return (columns.size() + (shape.columns - 1)) / shape.columns; }

  // -- tasks
  Block columns_of(Val column_block, Val part);
  void set_rows(Block& block, Range rows);
  void set_depths(Block& block, Range depths);
  Block block_of(Val task);
  void fill_start(const Block& block);
  void run(const Block& block, Val number);
  void multiply_columns(const Block& block, Val number);
  void multiply_few_rows(const Block& block);

  // -- rows by expert
  void task_by_expert(Val task);
  void zero_block(const Block& block, Val number);
  void zero_rows(const Block& block, Range rows);
  void zero_without_rows(const Block& block);
  int expert_slot(int slot) const;

  // -- the walk
  void multiply_blocks(const Block& block, Val number);
  void multiply_real_blocks(const Block& block, Val number);
  void walk_by_strips(const Block& block, const Step& step);
  void walk_by_tiles(const Block& block, const Step& step, FetchStream& of_a, FetchStream& of_b);
  void tile_with_strips(const Block& block, const Step& step, Val tile, Range rows, FetchStream& of_a,
                        FetchStream& of_b);
  void call_tile(const Block& block, const Step& step, Range rows, Val strip, const TileOperands& operands);
  Step step_of(const Block& block, const Block& following, Val has_following, Val d);
  void begin_fetching(const Block& block, const Step& step, FetchStream& of_a, FetchStream& of_b);
  void fetch_next_rows(const Block& block, const Step& step, Val tile, Range rows, FetchStream& of_a);
  Val address(Ptr matrix, Val row, Val column, Val ld);

  // -- operands
  Val collides(Val ld);
  Ptr strip_panel(Val strip);
  Val first_packed(const Block& block, const Step& step);
  Val real_depth(Val d, Val depth);
  void pack_rows(int width, Ptr source, Val ld, Ptr to, Val columns, const Step& step);
  void pack_strip(const Block& block, const Step& step, Val strip, Ptr to);
  void pack_columns_of_a(const Step& step, Val row, Ptr to);
  std::pair<llvm::Value*, Val> strip_of_b(const Block& block, const Step& step, Val strip);
  std::pair<Ptr, Val> rows_of_a(Range rows, const Step& step);
  void call(llvm::Function* function, std::initializer_list<llvm::Value*> arguments);

  // -- what follows
  bool has_epilogue() const;
  int gamma_slot() const;
  int others_slot() const;
  int activated_slot() const;
  Val with_other_branches(Val row, Lane lane, Val y);
  Val with_slope(Val row, Lane lane, Val y, Val x);
  void epilogue(const Block& block, Range rows);
  void finish(const Block& block, const Step& step, Range rows);
  Ptr mask() { return k.pointer(expert_slot(0), ir::DType::U8); }  // never by expert
  bool sums_real_rows() const { return masked && form == "tn"; }
  Val any_real(Range rows);
  void where_real(const Block& block, Range rows, const std::function<void()>& body);
};

}  // namespace tfc::codegen
