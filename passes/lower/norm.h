// Calls of the norm kernels, alone and with the sum that goes before or after.
#pragma once

#include <optional>

#include "passes/lower/dropout.h"
#include "passes/lower/lowering.h"

namespace tfc::passes {

/// y = norm(x), or with `added` terms: sum = x + scale * (their sum), y = norm(sum).
struct NormCall {
  std::string kind;  // layer | rms
  ir::Type type;     // of x
  double eps = 0;
  Location y, x;
  ir::Arg gamma, beta, mean, rstd;  // null pointers where absent
  struct Term {
    Location rows;
    std::optional<DropoutCall> dropout;
  };
  std::vector<Term> added;
  Location sum;
  double scale = 1.0;
  ir::Arg real{ir::Arg::Kind::Pointer, ir::Space::Workspace, -1, {}};  // u8: rows to make, see Lowering::real_rows
};
void call_norm(Lowering& l, const NormCall& call);

/// dx = (added +) the gradient of a norm's input, and a dropped copy of it; dgamma and dbeta where they are used.
struct NormGradCall {
  std::string kind;
  ir::Type type;
  Location dx, dy, x;
  ir::Arg gamma, mean, rstd;
  std::optional<Location> added;
  ir::Value dgamma, dbeta;
  Location dropped;
  std::optional<DropoutCall> dropout;
};
void call_norm_grad(Lowering& l, const NormGradCall& call);

}  // namespace tfc::passes
