// Products whose rows are sorted by expert (ir/ops.def): each expert's rows are multiplied by a B of its own.
#include "codegen/kernels/product_emitter.h"

namespace tfc::codegen {

int ProductEmitter::expert_slot(int slot) const {
  return (has_epilogue() ? activated_slot() + (has_activated ? 2 : 0) : kOut) + slot;
}

/// Block number `number` of rows by expert: each expert's rows make blocks of nearly equal height, and what
/// belongs to none comes last.
void ProductEmitter::task_by_expert(Val task) {
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
        set_depths(block, {k.index(0), k.integer(kK)});
        block.b = k.at(b, expert.get() * (k.integer(kN) * k.integer(kK)));
        block.bias_from = expert.get() * k.integer(kN);
        run(block, task);
      },
      [&] { zero_block(block, left.get()); });
}

/// The rows that belong to no expert, block `number` of them; past the last there are none.
void ProductEmitter::zero_block(const Block& block, Val number) {
  const Ptr starts = k.pointer(expert_slot(kStarts), ir::DType::I32);
  const Val first = k.to_index(k.load(starts, k.integer(expert_slot(kExperts)))) + number * block_rows;
  zero_rows(block, {first, k.min(first + block_rows, k.integer(kM))});
}

/// All that the epilogue writes, and the sums.
void ProductEmitter::zero_rows(const Block& block, Range rows) {
  k.loop("rest", rows.first, rows.last, 1, [&](Val row) {
    k.zero(k.at(c, row * k.integer(kLdc) + block.columns.first), block.columns.size());
    const auto zero_row = [&](int slot, int ld) {
      k.zero(k.at(k.pointer(slot), row * k.integer(ld) + block.columns.first), block.columns.size());
    };
    if (has_epilogue()) zero_row(kOut, kLdOut);
    if (has_activated) zero_row(activated_slot(), activated_slot() + 1);
  });
}

/// Form tn: what an expert without rows leaves.
void ProductEmitter::zero_without_rows(const Block& block) {
  k.if_((block.depths.size() == 0) & (k.integer(kAccumulate) == 0), [&] {
    k.loop("zero", block.rows.all.first, block.rows.all.last, 1, [&](Val row) {
      k.zero(k.at(block.out, row * k.integer(kLdc) + block.columns.first), block.columns.size());
    });
  });
}

}  // namespace tfc::codegen
