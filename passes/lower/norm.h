// Calls of the norm kernels, alone and with the sum that goes before or after.
#pragma once

#include <optional>

#include "passes/lower/dropout.h"
#include "passes/lower/lowering.h"

namespace tfc::passes {

/// Rows whose contributions to a parameter's gradient make one partial sum.
inline constexpr int64_t kPartialRows = 32;

/// A gradient f[D] = `count` partial sums, `stride` elements apart, added in order; nothing where nobody reads it.
void sum_partials(Lowering& l, ir::Value gradient, ir::Arg partials, const ir::Dim& count, int64_t D,
                  int64_t stride);

/// y = norm(x), or with `added` terms: sum = x + scale * (their sum), y = norm(sum). The node's first result is y.
struct NormCall {
  std::string kind;  // layer | rms
  ir::Type type;     // of x
  double eps = 0;
  Location x;
  ir::Arg gamma, beta, mean, rstd;  // null pointers where absent
  struct Term {
    Location rows;
    std::optional<DropoutCall> dropout;
  };
  std::vector<Term> added;
  Location sum;  // a null pointer where nobody but the norm reads it
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
