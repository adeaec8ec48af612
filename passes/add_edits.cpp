#include "passes/add_edits.h"

#include <set>

#include "ir/check.h"
#include "ir/edits.h"
#include "ir/heads.h"
#include "passes/derive/derive.h"
#include "passes/named_values.h"
#include "passes/row_mask.h"

namespace tfc::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpKind;
using ir::Value;

/// What heads make for the caller alone: their products, and these or hidden states without padding.
std::set<Value> answers_of(const ir::Module& module, const Graph& graph) {
  std::set<Value> answers;
  for (const ir::HeadFacts& head : ir::heads_of(module.facts)) {
    Value value = graph.output(head.named("output"));
    if (value.valid() && graph.node(value.node).op == OpKind::MaskRows) {
      answers.insert(value);
      value = graph.operand(value.node, 0);
    }
    if (value.valid() && head.type != "none") answers.insert(value);
  }
  return answers;
}

bool is_position_table(OpKind op) {
  return op == OpKind::PositionRows || op == OpKind::Sinusoid || op == OpKind::RopeTable;
}

std::string refusal(const Graph& graph, Value value, const std::set<Value>& answers) {
  const OpKind op = graph.node(value.node).op;
  if (op == OpKind::Attention && value.result == 1)
    return "is computed for taps alone, so it cannot be edited";
  if (answers.contains(value)) return "is a head's answer, which no loss reads, so it cannot be edited";
  if (is_position_table(op))
    return "is a table of positions, which cannot be edited: edit what it is added to";
  return "";
}

void edit(Graph& graph, const NamedValue& named) {
  const ir::Type type = graph.type(named.value), how{ir::DType::U8, type.shape};
  const Value value = add_state(graph, ir::kEditsSpace, named.name, type);
  const Value what = add_state(graph, ir::kEditsSpace, std::string(ir::kHow) + named.name, how);
  const NodeId edited = graph.add(OpKind::Edit, {named.value, value, what, row_mask(graph, type)}, {},
                                  named.name + ".edited", graph.node(named.value.node).place);
  graph.replace_uses(named.value, {edited, 0});
}

}  // namespace

bool add_edits(ir::Module& module, PassContext& context) {
  if (module.edits.empty()) return false;
  ir::Entry* model = module.entry("model");
  TFC_CHECK(model, "add-edits expects an entry named model");
  Graph& graph = model->graph;
  std::vector<NamedValue> values = tappable_values(graph);
  const std::set<Value> answers = answers_of(module, graph);
  for (NamedValue& named : values) named.refusal = refusal(graph, named.value, answers);
  const std::vector<NamedValue> edited = values_named_by(module.edits, values, "edits", context.diagnostics);
  for (const NamedValue& named : edited) edit(graph, named);
  context.diagnostics.remark("add-edits", module.edits.front().place,
                             std::to_string(edited.size()) + " values can be changed by callers");
  module.edits.clear();
  return true;
}

}  // namespace tfc::passes
