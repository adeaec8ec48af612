// How many layers have to be computed again is found by trying: the rest of the pipeline plans the entry, and
// the plan says its bytes. More layers never need more, so a bisection does.
#include "passes/recompute/recompute.h"

namespace tfc::passes {
namespace {

using ir::Dim;
using ir::Symbol;

constexpr int64_t kThreads = 8;  // whose scratch the budget has room for

/// All that training owns, in bytes at the budget's point.
struct Needs {
  int64_t parameters = 0, gradients = 0, moments = 0, workspace = 0;
  int64_t total() const { return parameters + gradients + moments + workspace; }
};

/// Workspace, the threads' scratch, and what a call keeps beside them: masks and numbers. (Ids are the
/// caller's, but next to nothing.)
int64_t workspace_of(const ir::Plan& plan, const ir::Point& point) {
  int64_t bytes = plan.workspace_bytes().at(point) + kThreads * plan.scratch_bytes().at(point);
  for (const ir::External& external : plan.externals) {
    if (external.type.rank() < 3) bytes += align_up(external.type.bytes(), 64).at(point);
  }
  return bytes;
}

/// The module with that entry alone, planned with these layers computed again.
ir::Entry planned_with(const ir::Module& module, const ir::Entry& entry,
                       const std::vector<std::string>& layers, const PassOptions& options) {
  ir::Module trial = module;
  trial.entries = {entry};
  trial.recompute = {};
  recompute_in(trial.entries[0].graph, layers, options.point);
  PassOptions quiet;
  quiet.point = options.point;
  quiet.optimisation = options.optimisation;
  quiet.disabled = options.disabled;
  ir::Diagnostics unheard;
  run_pipeline(trial, ir::Phase::Planned, quiet, unheard);
  return std::move(trial.entries[0]);
}

void refuse(const ir::Module& module, const Needs& needs, ir::Diagnostics& diagnostics) {
  const ir::Recompute& budget = module.recompute;
  const auto bytes = [](int64_t number) { return std::to_string(number) + " bytes"; };
  ir::Diagnostic& error = diagnostics.error(
      budget.place, "training needs " + bytes(needs.total()) + " at batch " + std::to_string(budget.batch) +
                        ", seq " + std::to_string(budget.seq) +
                        " with every layer computed again, the budget is " + bytes(budget.bytes));
  error.notes.push_back("parameters " + bytes(needs.parameters) + ", gradients " + bytes(needs.gradients) +
                        ", moments " + bytes(needs.moments) + ", workspace " + bytes(needs.workspace));
}

}  // namespace

std::vector<std::string> layers_for_budget(const ir::Module& module, const ir::Entry& entry,
                                           PassContext& context) {
  const std::vector<std::string> all = layers_with_backward(entry.graph);
  const ir::Recompute& budget = module.recompute;
  const ir::Point point{budget.batch, budget.seq, budget.seq, budget.seq};
  const int64_t element = ir::dtype_bytes(module.real);
  Needs needs;
  needs.parameters = element * module.parameter_block();
  needs.gradients = element * module.gradient_block();
  needs.moments = 2 * needs.gradients;
  const auto first = [&](size_t count) { return std::vector<std::string>(all.begin(), all.begin() + count); };
  const auto fits = [&](size_t count) {
    needs.workspace = workspace_of(*planned_with(module, entry, first(count), context.options).plan, point);
    return needs.total() <= budget.bytes;
  };
  if (fits(0)) return {};
  if (!fits(all.size())) {
    refuse(module, needs, context.diagnostics);
    return all;
  }
  size_t too_few = 0, enough = all.size();
  while (enough - too_few > 1) {
    const size_t middle = (too_few + enough) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return first(enough);
}

}  // namespace tfc::passes
