// How parameters begin: the four meanings of the description's `init`.
#pragma once

#include "ir/module.h"

namespace tfc::passes {

/// The starting values of every kind of parameter, under the module's `init`.
///
///   normal   every matrix and table N(0, init_std), biases 0
///   gpt2     the same, but the projections that write to the residual stream (attention's o, the
///            feed-forward's down) have deviation init_std / sqrt(2L), L counting all layers of the model
///   xavier   torch.nn.Transformer: every matrix xavier_uniform, where attention's q, k and v count as the
///            one matrix that nn.MultiheadAttention keeps them in; attention's biases 0, other biases as
///            nn.Linear
///   torch    nn.Linear's defaults, weights and biases U(+-1/sqrt(fan_in)); attention as
///            nn.MultiheadAttention: q, k, v xavier_uniform as one matrix, o as nn.Linear, all its biases 0
///
/// With `zero_init` the projections that write to the residual stream begin at zero, and so do their biases:
/// a branch adds nothing at first (Goyal et al. 2017).
///
/// Norms begin at 1 and 0. For xavier and torch tables begin as nn.Embedding does, N(0, 1), but a table that
/// is also the output projection begins as that projection's matrix: N(0, 1) would give logits of deviation
/// sqrt(D).
class Initialiser {
 public:
  explicit Initialiser(const ir::Module& module);

  ir::Init matrix(int64_t rows, int64_t columns) const;           // up, gate, head, written linears
  ir::Init residual_matrix(int64_t rows, int64_t columns) const;  // down
  ir::Init bias(int64_t fan_in) const;
  ir::Init residual_bias(int64_t fan_in) const;
  ir::Init attention_input(int64_t joint_rows, int64_t columns) const;  // q, k, v: the rows of all three
  ir::Init attention_output(int64_t rows, int64_t columns) const;       // o
  ir::Init attention_bias() const;
  ir::Init table(int64_t rows, int64_t width, bool tied) const;

 private:
  enum class Kind : uint8_t { Normal, Gpt2, Xavier, Torch } kind_ = Kind::Normal;
  bool zero_branches_;
  double deviation_;
  double residual_deviation_;
};

inline constexpr ir::Init kZeros{ir::Init::Kind::Constant, 0.0};
inline constexpr ir::Init kOnes{ir::Init::Kind::Constant, 1.0};

}  // namespace tfc::passes
