// Elementary functions as straight-line code: polynomials after a range reduction, for scalars and vectors of
// float and double. No call of a library is emitted, so results are the same bits wherever the same
// instructions exist. Bounds are in units of the last place of the result, over all finite arguments;
// infinities and zeros are exact, NaN stays NaN. Results below the least normal number are 0.
#pragma once

#include "codegen/kernel_builder.h"

namespace tfc::codegen {

Val exp(Val x);      // float 1.5, double 1.5; infinity from 88.73 (709.79) on
Val log(Val x);      // float 1.5, double 1.5; -inf at 0, NaN below
Val tanh(Val x);     // float 2.5, double 2.5
Val sigmoid(Val x);  // 1 / (1 + exp(-x)): float 3, double 3
Val rsqrt(Val x);    // 1 / sqrt(x), both rounded: 1.5

/// exp for x <= 0 or NaN: softmax weights. The same bits as exp there.
Val exp_nonpositive(Val x);

/// The standard normal distribution up to x, and its density. Absolute errors below 2e-7 (float), 4e-16 (double); of
/// small tails also relative ones, below (6 + x^2) units of the last place. Tails that are no normal number are 0.
struct Normal {
  Val cdf, density;
};
Normal normal(Val x);

struct SinCos {
  Val sin, cos;
};
/// Absolute error below 3e-16 (double) for |x| <= 2^31. Float arguments go through double.
SinCos sin_cos(Val x);

/// base^n for a whole n >= 0 by repeated squaring; scalars of double, n an i64.
Val power(Val base, Val n);

}  // namespace tfc::codegen
