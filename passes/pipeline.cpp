// The story of the compiler, in order. A module begins as what the user wrote and ends as tables that a run
// time walks.
#include <algorithm>

#include "passes/accumulate_in_place.h"
#include "passes/add_edits.h"
#include "passes/add_taps.h"
#include "passes/cancel_key_bias.h"
#include "passes/choose_recompute.h"
#include "passes/derive_entries.h"
#include "passes/differentiate.h"
#include "passes/drop_dead_nodes.h"
#include "passes/expand.h"
#include "passes/fold_constants.h"
#include "passes/fuse_epilogues.h"
#include "passes/fuse_gate_up.h"
#include "passes/fuse_qkv.h"
#include "passes/fuse_residual_norm.h"
#include "passes/mask_taps.h"
#include "passes/merge_equal_nodes.h"
#include "passes/pass.h"
#include "passes/place_norms.h"
#include "passes/plan.h"
#include "passes/plan_memory.h"
#include "passes/prune_frozen.h"

namespace tfc::passes {
namespace {

using ir::Phase;

constexpr bool kMandatory = true, kOptional = false;

// clang-format off
constexpr Pass kPasses[] = {
    // One graph, "model", of blocks: embedding, layer, attention, ffn, norm, residual, head, loss.
    {"place-norms", "ordinary layers become node lists, with their norms where the placement says",
     Phase::Blocks, Phase::Blocks, kMandatory, place_norms},
    {"expand", "blocks become primitives; parameters are named, shaped and laid out",
     Phase::Blocks, Phase::Ops, kMandatory, expand},

    // From here on every node is a primitive, every value has a shape, and parameters keep their places.
    {"merge-equal-nodes", "what is computed twice is computed once",
     Phase::Ops, Phase::Ops, kMandatory, merge_equal_nodes},
    // From here on a value that several readers want has one gradient, the sum of what they give.
    {"fuse-qkv", "attention's projections of one input are one product",
     Phase::Ops, Phase::Ops, kMandatory, fuse_qkv},
    {"fuse-gate-up", "the two halves of a gated feed-forward are one product",
     Phase::Ops, Phase::Ops, kMandatory, fuse_gate_up},
    // From here on no two products with neighbouring weights read the same value.
    {"add-taps", "values that the description taps are outputs, which every pass respects",
     Phase::Ops, Phase::Ops, kMandatory, add_taps},
    {"add-edits", "values that the description edits go through an edit, taps of them too",
     Phase::Ops, Phase::Ops, kMandatory, add_edits},
    {"fold-constants", "what is known now need not run",
     Phase::Ops, Phase::Ops, kOptional, fold_constants},
    {"drop-dead-nodes", "what no output needs is not computed",
     Phase::Ops, Phase::Ops, kOptional, drop_dead_nodes},
    {"derive-entries", "one graph for each entry point: infer, last, loss, logprobs, train, vjp, step, ...",
     Phase::Ops, Phase::Joint, kMandatory, derive_entries},

    // From here on each entry has a graph of its own; in-place updates are `donates` attributes.
    {"differentiate", "train and vjp get their backward",
     Phase::Joint, Phase::Joint, kMandatory, differentiate},
    {"prune-frozen", "what does not move needs no gradient",
     Phase::Joint, Phase::Joint, kOptional, prune_frozen},
    {"cancel-key-bias", "softmax does not see a bias of the keys, so its gradient is exactly zero",
     Phase::Joint, Phase::Joint, kMandatory, cancel_key_bias},
    {"mask-taps", "what a tap shows of padding is zeros",
     Phase::Joint, Phase::Joint, kMandatory, mask_taps},
    // From here on graphs are complete: what remains is to run them well.
    {"fold-constants", "what the rules of derivation left",
     Phase::Joint, Phase::Joint, kOptional, fold_constants},
    {"merge-equal-nodes", "what forward and backward both compute",
     Phase::Joint, Phase::Joint, kOptional, merge_equal_nodes},
    {"drop-dead-nodes", "what only the other entries need",
     Phase::Joint, Phase::Joint, kOptional, drop_dead_nodes},
    {"choose-recompute", "the backward computes again what is not worth keeping",
     Phase::Joint, Phase::Joint, kOptional, choose_recompute},

    {"accumulate-in-place", "gradients are added to memory where they are made",
     Phase::Joint, Phase::Fused, kMandatory, accumulate_in_place},
    // From here on the order of every sum is settled; what follows keeps each bit.
    {"fuse-epilogues", "what follows a product at once happens where the product is made",
     Phase::Fused, Phase::Fused, kOptional, fuse_epilogues},
    {"fuse-residual-norm", "a sum is normalised while its row is in cache",
     Phase::Fused, Phase::Fused, kOptional, fuse_residual_norm},

    // From here on one node is one kernel; a fused node's body says what it computes.
    {"plan", "nodes become kernel calls on buffers, in an order that keeps memory low",
     Phase::Fused, Phase::Planned, kMandatory, plan},
    // From here on the records say what runs; the graphs stay for the reader.
    {"plan-memory", "buffers that do not live at the same time share slots",
     Phase::Planned, Phase::Planned, kMandatory, plan_memory},
};
// clang-format on

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

bool can_be_disabled(std::string_view name) {
  return std::any_of(std::begin(kPasses), std::end(kPasses),
                     [&](const Pass& pass) { return pass.name == name && !pass.mandatory; });
}

}  // namespace tfc::passes
