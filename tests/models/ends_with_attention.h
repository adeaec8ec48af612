// A description that tests of several folders need.
#pragma once

namespace tfc::models {

/// All is computed again, and of the last layer vjp needs the log-sums alone: nobody reads what its attention makes.
inline constexpr const char* kEndsWithAttention = R"(
[model]
kind = "decoder"
d_model = 18
layers = 2
heads = 3
pattern = ["bare"]
[norm]
final = false
[block.bare]
nodes = [ { id = "attn", op = "attention", in = "x" } ]
[train]
recompute = "all"
)";

}  // namespace tfc::models
