// The three placements of normalisation, as the node lists that a user could have written.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tfc::passes {

/// One node of a layer. `in`: names of earlier nodes, separated by blanks; x is the layer's input, and a
/// cross attention also reads the memory.
struct ListNode {
  std::string_view id;
  std::string_view op;  // norm | attention | cross | ffn | residual
  std::string_view in;
};

// x + f(norm(x)): the sum is never normalised, so gradients reach every layer unscaled (Xiong et al. 2020).
inline constexpr ListNode kPreNorm[] = {
    {"norm1", "norm", "x"},
    {"attn", "attention", "norm1"},
    {"sum1", "residual", "x attn"},
    {"norm2", "norm", "sum1"},
    {"ffn", "ffn", "norm2"},
    {"out", "residual", "sum1 ffn"},
};
inline constexpr ListNode kPreNormWithMemory[] = {
    {"norm1", "norm", "x"},
    {"attn", "attention", "norm1"},
    {"sum1", "residual", "x attn"},
    {"norm2", "norm", "sum1"},
    {"cross", "cross", "norm2"},
    {"sum2", "residual", "sum1 cross"},
    {"norm3", "norm", "sum2"},
    {"ffn", "ffn", "norm3"},
    {"out", "residual", "sum2 ffn"},
};

// norm(x + f(x)): the original transformer (Vaswani et al. 2017).
inline constexpr ListNode kPostNorm[] = {
    {"attn", "attention", "x"},
    {"sum1", "residual", "x attn"},
    {"norm1", "norm", "sum1"},
    {"ffn", "ffn", "norm1"},
    {"sum2", "residual", "norm1 ffn"},
    {"norm2", "norm", "sum2"},
};
inline constexpr ListNode kPostNormWithMemory[] = {
    {"attn", "attention", "x"},
    {"sum1", "residual", "x attn"},
    {"norm1", "norm", "sum1"},
    {"cross", "cross", "norm1"},
    {"sum2", "residual", "norm1 cross"},
    {"norm2", "norm", "sum2"},
    {"ffn", "ffn", "norm2"},
    {"sum3", "residual", "norm2 ffn"},
    {"norm3", "norm", "sum3"},
};

// x + norm(f(norm(x))): before and after each sub-layer (Ding et al. 2021).
inline constexpr ListNode kSandwichNorm[] = {
    {"norm1", "norm", "x"},
    {"attn", "attention", "norm1"},
    {"norm1_out", "norm", "attn"},
    {"sum1", "residual", "x norm1_out"},
    {"norm2", "norm", "sum1"},
    {"ffn", "ffn", "norm2"},
    {"norm2_out", "norm", "ffn"},
    {"out", "residual", "sum1 norm2_out"},
};
inline constexpr ListNode kSandwichNormWithMemory[] = {
    {"norm1", "norm", "x"},
    {"attn", "attention", "norm1"},
    {"norm1_out", "norm", "attn"},
    {"sum1", "residual", "x norm1_out"},
    {"norm2", "norm", "sum1"},
    {"cross", "cross", "norm2"},
    {"norm2_out", "norm", "cross"},
    {"sum2", "residual", "sum1 norm2_out"},
    {"norm3", "norm", "sum2"},
    {"ffn", "ffn", "norm3"},
    {"norm3_out", "norm", "ffn"},
    {"out", "residual", "sum2 norm3_out"},
};

/// The list of a placement: "pre", "post" or "sandwich".
inline std::span<const ListNode> norm_list(std::string_view placement, bool memory) {
  if (placement == "pre") return memory ? std::span<const ListNode>(kPreNormWithMemory) : kPreNorm;
  if (placement == "post") return memory ? std::span<const ListNode>(kPostNormWithMemory) : kPostNorm;
  return memory ? std::span<const ListNode>(kSandwichNormWithMemory) : kSandwichNorm;
}

/// What `auto` means for a stack of `depth` layers: post trains as well and leaves the output normalised
/// while a stack is shallow; beyond six layers its gradients vanish towards the input at initialisation, so
/// pre.
inline constexpr int64_t kDeepestPostStack = 6;
inline std::string_view auto_placement(int64_t depth) { return depth > kDeepestPostStack ? "pre" : "post"; }

}  // namespace tfc::passes
