// The text form of modules (.tcir). read.cpp is its other half: what is printed here reads back to the same
// module.
#include <algorithm>
#include <unordered_map>

#include "ir/module.h"
#include "ir/text.h"

namespace tfc::ir {
namespace {

class Printer {
 public:
  explicit Printer(const Module& module) : module_(module) { number_files(); }

  std::string text;

  void module();
  void entry(const Entry& entry);

 private:
  void number_files();
  void number_files(const Graph& graph);
  void number_file(const Place& place);
  void description();
  void parameters();
  void constants();
  void graph(const Graph& graph, const std::string& indent);
  void node(const Graph& graph, NodeId id, const std::string& indent);
  void plan(const Plan& plan);
  void record(const Record& record);
  std::string loc(const Place& place) const;

  const Module& module_;
  std::vector<std::string> files_;  // in order of first mention
  std::unordered_map<std::string, size_t> file_number_;
};

// ---- places: files are numbered in the order in which they are first mentioned ----

void Printer::number_file(const Place& place) {
  if (place.file && file_number_.emplace(place.file->name, files_.size()).second)
    files_.push_back(place.file->name);
}

void Printer::number_files(const Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    number_file(graph.node(id).place);
    if (graph.node(id).body) number_files(*graph.node(id).body);
  }
}

void Printer::number_files() {
  for (const Parameter& parameter : module_.parameters) number_file(parameter.place);
  for (const Entry& entry : module_.entries) number_files(entry.graph);
}

/// " loc(3:9+4)": line, column, and the length where it is not 1; " loc(3:9 in 1)" in another file than the
/// first.
std::string Printer::loc(const Place& place) const {
  if (!place.file) return "";
  std::string text = " loc(" + std::to_string(place.line) + ':' + std::to_string(place.column);
  if (place.length != 1) text += '+' + std::to_string(place.length);
  const size_t number = file_number_.at(place.file->name);
  if (number != 0) text += " in " + std::to_string(number);
  return text + ')';
}

// ---- module ----

void Printer::module() {
  text += "transformerc ir 1\n";
  text += "module " + name_text(module_.name) + " phase " + std::string(phase_name(module_.phase)) +
          " real " + std::string(dtype_name(module_.real)) + '\n';
  // The name alone: a dump is the same bytes wherever the description lies.
  for (const std::string& file : files_) text += "file " + quoted(file.substr(file.rfind('/') + 1)) + '\n';
  if (!module_.facts.empty()) text += "facts " + module_.facts.print() + '\n';
  description();
  parameters();
  constants();
  for (const Entry& each : module_.entries) {
    text += '\n';
    entry(each);
  }
}

/// One string for each line of the description.
void Printer::description() {
  if (module_.description.empty()) return;
  text += "description\n";
  std::string_view rest = module_.description;
  while (!rest.empty()) {
    const size_t end =
        std::min(rest.size(), rest.find('\n') == rest.npos ? rest.size() : rest.find('\n') + 1);
    text += "  " + quoted(rest.substr(0, end)) + '\n';
    rest.remove_prefix(end);
  }
}

void Printer::parameters() {
  if (module_.parameters.empty()) return;
  constexpr const char* kInits[] = {"constant", "normal", "uniform"};
  text += "parameters {\n";
  for (const Parameter& parameter : module_.parameters) {
    text += "  " + name_text(parameter.name) + " " + attribute_text(parameter.shape) + " at " +
            std::to_string(parameter.offset) + ' ' + kInits[static_cast<int>(parameter.init.kind)] + '(' +
            real_text(parameter.init.value) + ')';
    if (parameter.decayed) text += " decayed";
    if (parameter.frozen) text += " frozen";
    if (parameter.joins_previous) text += " joined";
    text += loc(parameter.place) + '\n';
  }
  text += "}\n";
}

void Printer::constants() {
  if (module_.constants.empty()) return;
  text += "constants {\n";
  for (const Constant& constant : module_.constants) {
    text += "  " + name_text(constant.name) + " [";
    for (size_t i = 0; i < constant.values.size(); ++i) {
      if (i > 0) text += ", ";
      text += real_text(constant.values[i]);
    }
    text += "]\n";
  }
  text += "}\n";
}

void Printer::entry(const Entry& entry) {
  text += "entry " + name_text(entry.name) + " {\n";
  graph(entry.graph, "  ");
  if (entry.plan) plan(*entry.plan);
  text += "}\n";
}

// ---- graphs ----

std::string value_text(const Graph& graph, Value value) {
  if (!value.valid()) return "_";
  std::string text = "%" + name_text(graph.node(value.node).name);
  if (value.result > 0) text += '#' + std::to_string(value.result);
  return text;
}

void Printer::graph(const Graph& graph, const std::string& indent) {
  for (const NodeId id : graph.nodes()) node(graph, id, indent);
  for (const Output& output : graph.outputs)
    text += indent + "output " + name_text(output.name) + " = " + value_text(graph, output.value) + '\n';
}

void Printer::node(const Graph& graph, NodeId id, const std::string& indent) {
  const Node& node = graph.node(id);
  text += indent + "%" + name_text(node.name) + " = " + std::string(info(node.op).text) + '(';
  bool first = true;
  for (const Value operand : graph.operands(id)) {
    if (!first) text += ", ";
    first = false;
    text += value_text(graph, operand);
  }
  text += ')';
  if (!node.attributes.empty()) text += ' ' + node.attributes.print();
  if (node.donates >= 0) text += " donates " + std::to_string(node.donates);
  text += " : ";
  if (node.results.size() == 1) {
    text += node.results[0].text();
  } else {
    text += '(';
    for (size_t i = 0; i < node.results.size(); ++i) text += (i > 0 ? ", " : "") + node.results[i].text();
    text += ')';
  }
  text += loc(node.place);
  if (node.body) {
    text += " {\n";
    this->graph(*node.body, indent + "  ");
    text += indent + "}";
  }
  text += '\n';
}

// ---- plans ----

void Printer::plan(const Plan& plan) {
  text += "  plan {\n";
  for (const External& external : plan.externals)
    text += "    external " + name_text(external.name) + (external.is_output ? " out " : " in ") +
            external.type.text() + '\n';
  for (const Dim& slot : plan.slots) text += "    slot " + slot.text() + '\n';
  for (const Buffer& buffer : plan.buffers)
    text += "    buffer " + name_text(buffer.name) + " bytes " + buffer.bytes.text() + " live " +
            std::to_string(buffer.first) + " to " + std::to_string(buffer.last) + " slot " +
            std::to_string(buffer.slot) + '\n';
  for (const Record& each : plan.records) record(each);
  text += "  }\n";
}

std::string arg_text(const Arg& arg) {
  if (arg.kind == Arg::Kind::Integer) return arg.value.text();
  if (arg.index < 0) return "null";
  std::string text(space_name(arg.space));
  const bool numbered =
      arg.space == Space::Workspace || arg.space == Space::Constant || arg.space == Space::External;
  if (numbered || arg.index != 0) text += '[' + std::to_string(arg.index) + ']';
  if (!arg.value.is_zero()) text += '+' + arg.value.text();
  return text;
}

void Printer::record(const Record& record) {
  switch (record.kind) {
    case Record::Kind::LoopBegin:
      text += "    loop " + record.tasks.text() + " of " + name_text(record.node) + '\n';
      return;
    case Record::Kind::LoopEnd:
      text += "    end of " + name_text(record.node) + '\n';
      return;
    case Record::Kind::Call:
      break;
  }
  text += "    call " + name_text(record.kernel.family);
  if (!record.kernel.attributes.empty()) text += ' ' + record.kernel.attributes.print();
  text += " (";
  for (size_t i = 0; i < record.args.size(); ++i) text += (i > 0 ? ", " : "") + arg_text(record.args[i]);
  text += ") tasks " + record.tasks.text() + " scratch " + record.scratch.text() + " flops " +
          record.flops.text() + " bytes " + record.bytes.text() + " of " + name_text(record.node) + '\n';
}

}  // namespace

std::string print(const Module& module) {
  Printer printer(module);
  printer.module();
  return std::move(printer.text);
}

std::string print(const Entry& entry, const Module& module) {
  Printer printer(module);
  printer.entry(entry);
  return std::move(printer.text);
}

}  // namespace tfc::ir
