// Dropout inside kernels: the numbers of ir/dropout.h, drawn where they are needed.
#pragma once

#include "codegen/kernel_builder.h"

namespace tfc::codegen {

/// The words that the draws of a row begin with, i32 each: scalars, or vectors of several rows. `drops`: whether this
/// call drops anything, i1.
struct DropoutRow {
  Val first, second, drops;
};

class Dropout {
 public:
  Dropout(KernelBuilder& k, double p) : k_(k), p_(p) {}

  /// Of the place (an i64 argument) and the attention head, an i64.
  Val stream(Val place, Val head) const;
  /// Row `row` of the keys i32[rows,3].
  DropoutRow row(Ptr keys, Val row, Val stream) const;

  /// <n x i1>: which elements stay. Columns i32; of rows and columns one or both are vectors.
  Val keeps(const DropoutRow& row, Val columns) const;
  /// What is kept is multiplied by this: a scalar of the real type.
  Val scale(const DropoutRow& row) const;
  /// The elements of one row from `start` on, dropped and scaled.
  Val apply(const DropoutRow& row, Val start, Val x) const;
  Val apply(const DropoutRow& row, const Lane& lane, Val x) const { return apply(row, lane.start, x); }

  /// start, start + 1, ... as i32.
  Val columns(Val start, int lanes) const;
  /// The low half of i64 numbers.
  Val narrow(Val numbers) const;

 private:
  KernelBuilder& k_;
  double p_;
};


}  // namespace tfc::codegen
