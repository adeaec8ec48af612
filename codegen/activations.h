// Activation functions and their derivatives. NaN stays NaN.
#pragma once

#include <string>

#include "codegen/kernel_builder.h"

namespace tfc::codegen {

/// kind: relu | gelu (erf) | gelu_tanh | silu. x a real scalar or vector.
Val activate(const std::string& kind, Val x);

/// dy * act'(x). Where relu is flat the result is 0 whatever dy is.
Val activation_gradient(const std::string& kind, Val dy, Val x);

}  // namespace tfc::codegen
