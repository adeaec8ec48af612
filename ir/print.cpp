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
  Printer(const Module& module, bool places) : module_(module), places_(places) {
    if (places_) number_files();
  }

  std::string text;

  void module();
  void entry(const Entry& entry);

 private:
  void number_files();
  void number_files(const Graph& graph);
  void number_file(const Place& place);
  void description();
  void recompute();
  void patterns(const char* word, const std::vector<Freeze>& patterns);
  void lora();
  void parameters();
  void constants();
  void graph(const Graph& graph, const std::string& indent);
  void node(const Graph& graph, NodeId id, const std::string& indent);
  void plan(const Plan& plan);
  void record(const Record& record);
  void value(const Graph& graph, Value value);
  void arg(const Arg& arg);
  void loc(const Place& place);

  /// Names, numbers, sizes and plain text, one after the other.
  template <typename... Pieces>
  void put(const Pieces&... pieces) {
    (put_one(pieces), ...);
  }
  struct Name {
    std::string_view text;
  };
  void put_one(char piece) { text += piece; }
  void put_one(std::string_view piece) { text += piece; }
  void put_one(const char* piece) { text += piece; }
  void put_one(Name piece) { append_name(text, piece.text); }
  void put_one(int64_t piece) { append_number(text, piece); }
  void put_one(const Dim& piece) { piece.append_text(text); }
  void put_one(const Type& piece) { piece.append_text(text); }

  const Module& module_;
  const bool places_;
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
  number_file(module_.recompute.place);
  for (const Freeze& freeze : module_.freezes) number_file(freeze.place);
  for (const Freeze& tap : module_.taps) number_file(tap.place);
  for (const Freeze& edit : module_.edits) number_file(edit.place);
  number_file(module_.lora.place);
  for (const Freeze& target : module_.lora.targets) number_file(target.place);
  for (const Parameter& parameter : module_.parameters) number_file(parameter.place);
  for (const Entry& entry : module_.entries) number_files(entry.graph);
}

/// " loc(3:9+4)": line, column, and the length where it is not 1; " loc(3:9 in 1)" in another file than the
/// first.
void Printer::loc(const Place& place) {
  if (!places_ || !place.file) return;
  put(" loc(", int64_t{place.line}, ':', int64_t{place.column});
  if (place.length != 1) put('+', int64_t{place.length});
  const size_t number = file_number_.at(place.file->name);
  if (number != 0) put(" in ", static_cast<int64_t>(number));
  put(')');
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
  recompute();
  patterns("freeze", module_.freezes);
  patterns("tap", module_.taps);
  patterns("edit", module_.edits);
  lora();
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

void Printer::recompute() {
  const Recompute& chosen = module_.recompute;
  if (chosen.mode == "none") return;
  text += "recompute " + chosen.mode;
  if (chosen.mode == "auto") {
    text += " bytes " + std::to_string(chosen.bytes) + " batch " + std::to_string(chosen.batch) + " seq " +
            std::to_string(chosen.seq);
  }
  loc(chosen.place);
  text += '\n';
}

void Printer::lora() {
  const Lora& lora = module_.lora;
  if (lora.rank == 0) return;
  text += "lora rank " + std::to_string(lora.rank) + " alpha " + real_text(lora.alpha);
  loc(lora.place);
  text += " {\n";
  for (const Freeze& target : lora.targets) {
    text += "  " + quoted(target.pattern);
    loc(target.place);
    text += "\n";
  }
  text += "}\n";
}

void Printer::patterns(const char* word, const std::vector<Freeze>& patterns) {
  if (patterns.empty()) return;
  text += std::string(word) + " {\n";
  for (const Freeze& one : patterns) {
    text += "  " + quoted(one.pattern);
    loc(one.place);
    text += '\n';
  }
  text += "}\n";
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
    loc(parameter.place);
    text += '\n';
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

void Printer::value(const Graph& graph, Value value) {
  if (!value.valid()) return put('_');
  put('%', Name{graph.node(value.node).name});
  if (value.result > 0) put('#', int64_t{value.result});
}

void Printer::graph(const Graph& graph, const std::string& indent) {
  for (const NodeId id : graph.nodes()) node(graph, id, indent);
  for (const Output& output : graph.outputs) {
    put(indent, "output ", Name{output.name}, " = ");
    value(graph, output.value);
    put('\n');
  }
}

void Printer::node(const Graph& graph, NodeId id, const std::string& indent) {
  const Node& node = graph.node(id);
  put(indent, '%', Name{node.name}, " = ", info(node.op).text, '(');
  bool first = true;
  for (const Value operand : graph.operands(id)) {
    if (!first) put(", ");
    first = false;
    value(graph, operand);
  }
  put(')');
  if (!node.attributes.empty()) {
    put(' ');
    node.attributes.append_text(text);
  }
  if (node.donates >= 0) put(" donates ", int64_t{node.donates});
  if (node.late) put(" late");
  put(" : ");
  if (node.results.size() == 1) {
    put(node.results[0]);
  } else {
    put('(');
    for (size_t i = 0; i < node.results.size(); ++i) put(i > 0 ? ", " : "", node.results[i]);
    put(')');
  }
  loc(node.place);
  if (node.body) {
    put(" {\n");
    this->graph(*node.body, indent + "  ");
    put(indent, '}');
  }
  put('\n');
}

// ---- plans ----

void Printer::plan(const Plan& plan) {
  put("  plan {\n");
  for (const External& external : plan.externals)
    put("    external ", Name{external.name}, external.is_output ? " out " : " in ", external.type, '\n');
  for (const Dim& slot : plan.slots) put("    slot ", slot, '\n');
  for (const Buffer& buffer : plan.buffers)
    put("    buffer ", Name{buffer.name}, " bytes ", buffer.bytes, " live ", int64_t{buffer.first}, " to ",
        int64_t{buffer.last}, " slot ", int64_t{buffer.slot}, '\n');
  for (const Tap& tap : plan.taps)
    put("    tap ", Name{tap.name}, tap.gradient ? " gradient " : " value ", tap.type, " buffer ", int64_t{tap.buffer},
        '\n');
  for (const Record& each : plan.records) record(each);
  put("  }\n");
}

void Printer::arg(const Arg& arg) {
  if (arg.kind == Arg::Kind::Integer) return put(arg.value);
  if (arg.index < 0) return put("null");
  put(space_name(arg.space));
  const bool numbered =
      arg.space == Space::Workspace || arg.space == Space::Constant || arg.space == Space::External;
  if (numbered || arg.index != 0) put('[', int64_t{arg.index}, ']');
  if (!arg.value.is_zero()) put('+', arg.value);
}

void Printer::record(const Record& record) {
  switch (record.kind) {
    case Record::Kind::LoopBegin:
      return put("    loop ", record.tasks, " of ", Name{record.node}, '\n');
    case Record::Kind::LoopEnd:
      return put("    end of ", Name{record.node}, '\n');
    case Record::Kind::Call:
      break;
  }
  put("    call ", Name{record.kernel.family});
  if (!record.kernel.attributes.empty()) {
    put(' ');
    record.kernel.attributes.append_text(text);
  }
  put(" (");
  for (size_t i = 0; i < record.args.size(); ++i) {
    if (i > 0) put(", ");
    arg(record.args[i]);
  }
  put(") tasks ", record.tasks, " scratch ", record.scratch, " flops ", record.flops, " bytes ", record.bytes,
      " of ", Name{record.node}, '\n');
}

}  // namespace

std::string print(const Module& module, Places places) {
  Printer printer(module, places == Places::With);
  printer.module();
  return std::move(printer.text);
}

std::string print(const Entry& entry, const Module& module) {
  Printer printer(module, /*places=*/true);
  printer.entry(entry);
  return std::move(printer.text);
}

}  // namespace tfc::ir
