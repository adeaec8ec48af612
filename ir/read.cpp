#include "ir/read.h"

#include "ir/text.h"

namespace tfc::ir {
namespace {

constexpr int kDeepestBody = 4;  // fused nodes hold primitives: one level is all that passes make

}  // namespace

// ---- module ----

Module Reader::module() {
  header();
  while (!cursor_.at_end()) {
    if (cursor_.take_word("file")) {
      files_.push_back(std::make_shared<SourceFile>(SourceFile{cursor_.quoted(), ""}));
    } else if (cursor_.take_word("facts")) {
      module_.facts = cursor_.attributes();
    } else if (cursor_.take_word("description")) {
      description();
    } else if (cursor_.take_word("recompute")) {
      recompute();
    } else if (cursor_.take_word("freeze")) {
      freezes();
    } else if (cursor_.take_word("tap")) {
      module_.taps = patterns();
    } else if (cursor_.take_word("edit")) {
      module_.edits = patterns();
    } else if (cursor_.take_word("lora")) {
      lora();
    } else if (cursor_.take_word("parameters")) {
      parameters();
    } else if (cursor_.take_word("constants")) {
      constants();
    } else if (cursor_.take_word("entry")) {
      entry();
    } else {
      cursor_.fail(
          "expected file, facts, description, recompute, freeze, tap, edit, lora, parameters, constants or entry");
    }
  }
  return std::move(module_);
}

void Reader::header() {
  cursor_.expect_word("transformerc");
  cursor_.expect_word("ir");
  const Place version_place = cursor_.place();
  const int64_t version = cursor_.integer();
  if (version != 1)
    throw ReadFailure{version_place,
                      "this is version " + std::to_string(version) +
                          " of the text form, expected 1: print the dump again with this compiler"};
  cursor_.expect_word("module");
  module_.name = cursor_.name();
  cursor_.expect_word("phase");
  const Place phase_place = cursor_.place();
  const std::string phase = cursor_.word();
  if (!phase_from_name(phase))
    throw ReadFailure{phase_place,
                      "found '" + phase + "', expected a phase: blocks, ops, joint, fused or planned"};
  module_.phase = *phase_from_name(phase);
  cursor_.expect_word("real");
  const Place real_place = cursor_.place();
  const std::string real = cursor_.word();
  if (real != "f32" && real != "f64")
    throw ReadFailure{real_place, "found '" + real + "', expected f32 or f64"};
  module_.real = *dtype_from_name(real);
}

void Reader::description() {
  while (cursor_.quote_follows()) module_.description += cursor_.quoted();
}

void Reader::recompute() {
  Recompute& chosen = module_.recompute;
  const Place mode_place = cursor_.place();
  chosen.mode = cursor_.word();
  if (chosen.mode != "all" && chosen.mode != "auto")
    throw ReadFailure{mode_place, "found '" + chosen.mode + "', expected all or auto"};
  if (chosen.mode == "auto") {
    for (const auto& [key, value] : {std::pair("bytes", &chosen.bytes), std::pair("batch", &chosen.batch),
                                     std::pair("seq", &chosen.seq)}) {
      const Place here = cursor_.place();
      cursor_.expect_word(key);
      *value = cursor_.integer();
      if (*value < 1) throw ReadFailure{here, std::string(key) + " of a budget begin at 1"};
    }
  }
  chosen.place = loc();
}

std::vector<Freeze> Reader::patterns() {
  std::vector<Freeze> patterns;
  cursor_.expect("{");
  while (cursor_.quote_follows()) {
    std::string pattern = cursor_.quoted();
    patterns.push_back({std::move(pattern), loc()});
  }
  cursor_.expect("}");
  return patterns;
}

void Reader::freezes() { module_.freezes = patterns(); }

void Reader::lora() {
  Lora& lora = module_.lora;
  cursor_.expect_word("rank");
  lora.rank = cursor_.integer();
  cursor_.expect_word("alpha");
  lora.alpha = cursor_.real();
  lora.place = loc();
  lora.targets = patterns();
}

void Reader::parameters() {
  cursor_.expect("{");
  while (!cursor_.take("}")) {
    Parameter parameter;
    parameter.name = cursor_.name();
    parameter.shape = cursor_.integers();
    cursor_.expect_word("at");
    parameter.offset = cursor_.integer();
    const Place init_place = cursor_.place();
    const std::string init = cursor_.word();
    if (init == "constant") {
      parameter.init.kind = Init::Kind::Constant;
    } else if (init == "normal") {
      parameter.init.kind = Init::Kind::Normal;
    } else if (init == "uniform") {
      parameter.init.kind = Init::Kind::Uniform;
    } else {
      throw ReadFailure{init_place, "found '" + init + "', expected constant, normal or uniform"};
    }
    cursor_.expect("(");
    parameter.init.value = cursor_.real();
    cursor_.expect(")");
    parameter.decayed = cursor_.take_word("decayed");
    parameter.frozen = cursor_.take_word("frozen");
    parameter.joins_previous = cursor_.take_word("joined");
    parameter.place = loc();
    module_.parameters.push_back(std::move(parameter));
  }
}

void Reader::constants() {
  cursor_.expect("{");
  while (!cursor_.take("}")) {
    Constant constant;
    constant.name = cursor_.name();
    constant.values = cursor_.reals();
    module_.constants.push_back(std::move(constant));
  }
}

/// loc(3:9+4 in 1), if it comes next.
Place Reader::loc() {
  Place place;
  const Place here = cursor_.place();
  if (!cursor_.take("loc(")) return place;
  const std::string position = cursor_.name();  // "3:9+4": all letters of names
  const Place end = cursor_.place();
  int fields[3] = {0, 0, 1};
  size_t field = 0, digits = 0;
  for (size_t i = 0; i <= position.size(); ++i) {
    const char c = i < position.size() ? position[i] : '\0';
    if (c >= '0' && c <= '9' && ++digits < 10) {
      fields[field] = (digits == 1 ? 0 : fields[field] * 10) + (c - '0');
      continue;
    }
    const bool ends = c == '\0' && field >= 1, next = (c == ':' && field == 0) || (c == '+' && field == 1);
    if (digits == 0 || digits > 9 || !(ends || next))
      throw ReadFailure{end, "expected a place such as loc(3:9+4)"};
    ++field;
    digits = 0;
  }
  const size_t number = cursor_.take_word("in") ? static_cast<size_t>(cursor_.integer()) : 0;
  if (number >= files_.size())
    throw ReadFailure{here, "there is no file " + std::to_string(number) + " above"};
  cursor_.expect(")");
  return {files_[number], fields[0], fields[1], fields[2]};
}

// ---- entries and their graphs ----

void Reader::entry() {
  Entry entry;
  const Place here = cursor_.place();
  entry.name = entry_name_ = cursor_.name();
  if (module_.entry(entry.name)) throw ReadFailure{here, "entry '" + entry.name + "' is there twice"};
  cursor_.expect("{");
  graph(entry.graph, 0);
  if (cursor_.take_word("plan")) entry.plan = plan();
  cursor_.expect("}");
  module_.entries.push_back(std::move(entry));
}

void Reader::graph(Graph& graph, int depth) {
  if (depth > kDeepestBody) cursor_.fail("bodies of fused nodes are nested too deeply");
  graph.real = module_.real;
  std::vector<PendingNode> pending;
  while (cursor_.take("%")) node(graph, pending, depth);
  for (const PendingNode& node : pending)
    for (uint32_t slot = 0; slot < node.operands.size(); ++slot)
      if (!node.operands[slot].absent) graph.set_operand(node.id, slot, resolve(graph, node.operands[slot]));
  while (cursor_.take_word("output")) {
    Output output;
    output.name = cursor_.name();
    cursor_.expect("=");
    const Reference value = reference();
    if (!value.absent) output.value = resolve(graph, value);
    graph.outputs.push_back(std::move(output));
  }
}

void Reader::node(Graph& graph, std::vector<PendingNode>& pending, int depth) {
  const Place here = cursor_.place();
  Node node;
  node.name = cursor_.name();
  if (node.name.empty()) throw ReadFailure{here, "a node needs a name"};
  if (graph.find(node.name).valid()) throw ReadFailure{here, "%" + node.name + " is defined twice"};
  cursor_.expect("=");
  const Place op_place = cursor_.place();
  const std::string op = cursor_.name();
  const OpInfo* op_info = op_from_text(op);
  if (op_info == nullptr) throw ReadFailure{op_place, "there is no operation '" + op + "'"};
  node.op = op_info->kind;
  PendingNode waiting;
  cursor_.expect("(");
  if (!cursor_.take(")")) {
    do {
      waiting.operands.push_back(reference());
    } while (cursor_.take(","));
    cursor_.expect(")");
  }
  node.attributes = cursor_.attributes();
  if (cursor_.take_word("donates")) node.donates = cursor_.small_integer();
  node.late = cursor_.take_word("late");
  cursor_.expect(":");
  if (cursor_.take("(")) {
    if (!cursor_.take(")")) {
      do {
        node.results.push_back(cursor_.type());
      } while (cursor_.take(","));
      cursor_.expect(")");
    }
  } else {
    node.results.push_back(cursor_.type());
  }
  node.place = loc();
  if (cursor_.take("{")) {
    const auto body = std::make_shared<Graph>();
    this->graph(*body, depth + 1);
    node.body = body;
    cursor_.expect("}");
  }
  places_[{entry_name_, node.name}] = here;
  waiting.id = graph.add_node(std::move(node), std::vector<Value>(waiting.operands.size()));
  pending.push_back(std::move(waiting));
}

Reader::Reference Reader::reference() {
  Reference reference;
  reference.place = cursor_.place();
  if (cursor_.take_word("_")) {
    reference.absent = true;
    return reference;
  }
  cursor_.expect("%");
  reference.name = cursor_.name();
  if (cursor_.take("#")) {
    const int result = cursor_.small_integer();
    if (result < 0) throw ReadFailure{reference.place, "results count from 0"};
    reference.result = static_cast<uint32_t>(result);
  }
  return reference;
}

Value Reader::resolve(const Graph& graph, const Reference& reference) {
  const NodeId id = graph.find(reference.name);
  if (!id.valid()) throw ReadFailure{reference.place, "there is no %" + reference.name + " in this graph"};
  const size_t results = graph.node(id).results.size();
  if (reference.result >= results)
    throw ReadFailure{reference.place, "%" + reference.name + " has " + std::to_string(results) +
                                           " results, found number " + std::to_string(reference.result)};
  return {id, reference.result};
}

std::optional<Module> read_module(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics) {
  DumpPlaces places;
  try {
    Module module = Reader(std::move(file), places).module();
    if (!verify(module, diagnostics, &places)) return std::nullopt;
    return module;
  } catch (ReadFailure& failure) {
    diagnostics.error(std::move(failure.place), std::move(failure.message));
    return std::nullopt;
  }
}

}  // namespace tfc::ir
