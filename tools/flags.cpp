// The flags, one line each in a table, and how their values are read.
#include "tools/flags.h"

#include <algorithm>
#include <charconv>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Regex.h"

namespace tfc::tools {

using llvm::StringRef;

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() < 3) return "";  // near everything
  const std::string nearest = ir::nearest_name(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  llvm::SmallVector<StringRef> pieces;
  StringRef(text).split(pieces, separator);
  for (StringRef piece : pieces) parts.push_back(piece.str());
  return parts;
}

bool read_number(const std::string& text, int64_t least, int64_t most, int64_t& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
}

// -- --emit
// ---------------------------------------------------------------------------------------------------------

struct EmitName {
  const char* name;
  Emit kind;
  bool takes_phase;
};
constexpr EmitName kEmitNames[] = {
    {"lib", Emit::Lib, false},
    {"so", Emit::So, false},
    {"obj", Emit::Obj, false},
    {"kernels", Emit::Kernels, false},
    {"header", Emit::Header, false},
    {"python", Emit::Python, false},
    {"toml", Emit::Toml, false},
    {"ir", Emit::Ir, true},
    {"dot", Emit::Dot, true},
    {"llvm", Emit::Llvm, false},
    {"asm", Emit::Asm, false},
    {"llvm-opt", Emit::LlvmOpt, false},
    {"report", Emit::Report, false},
};

bool read_phase(Parser& p, const std::string& kind, const std::string& text, ir::Phase& phase) {
  if (const auto found = ir::phase_from_name(text)) {
    phase = *found;
    return true;
  }
  const std::vector<std::string> phases = {"blocks", "ops", "joint", "fused", "planned"};
  return p.fail("--emit=" + kind + ":" + text + ": unknown phase '" + text + "'; there are " +
                joined(phases) + suggestion(text, phases));
}

bool read_emit(Parser& p, const std::string& value) {
  std::vector<std::string> known;
  for (const EmitName& name : kEmitNames) known.push_back(name.name);
  for (const std::string& word : split(value, ',')) {
    const std::string kind = word.substr(0, word.find(':'));
    if (kind == "html") return p.fail("not supported yet: --emit=html");
    const auto* entry = std::find_if(std::begin(kEmitNames), std::end(kEmitNames),
                                     [&](const EmitName& name) { return kind == name.name; });
    if (entry == std::end(kEmitNames)) {
      return p.fail("--emit: unknown kind '" + kind + "'; there are " + joined(known) +
                    suggestion(kind, known));
    }
    EmitRequest request{entry->kind, ir::Phase::Planned};
    if (kind != word) {
      if (!entry->takes_phase) return p.fail("--emit=" + word + ": only ir and dot take a phase");
      if (!read_phase(p, kind, word.substr(kind.size() + 1), request.phase)) return false;
    }
    if (std::count(p.options.emit.begin(), p.options.emit.end(), request) == 0)
      p.options.emit.push_back(request);
  }
  p.options.emit_given = true;
  return true;
}

// -- the others
// -----------------------------------------------------------------------------------------------------

bool read_set(Parser& p, const std::string& value) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0) {
    return p.fail("--set takes KEY=VALUE, such as --set model.layers=2; got '" + value + "'");
  }
  p.options.sets.push_back(value);
  return true;
}

bool read_tap(Parser& p, const std::string& value) {
  p.options.sets.push_back("--tap=" + value);
  return true;
}

bool one_of(Parser& p, const std::string& flag, const std::string& value,
            const std::vector<std::string>& known) {
  if (std::count(known.begin(), known.end(), value)) return true;
  return p.fail(flag + " is one of " + joined(known) + "; got '" + value + "'" + suggestion(value, known));
}

bool read_precision(Parser& p, const std::string& value) {
  if (!one_of(p, "--precision", value, {"f32", "f64"})) return false;
  p.options.precision = value == "f64" ? ir::DType::F64 : ir::DType::F32;
  return p.options.precision_given = true;
}

bool read_cpu(Parser& p, const std::string& value) {
  if (value == "multi") return p.fail("not supported yet: --cpu=multi");
  p.options.cpu = value;
  return p.options.cpu_given = true;
}

bool read_functions(Parser& p, const std::string& value) {
  if (!one_of(p, "--functions", value, {"infer", "train", "all"})) return false;
  p.options.passes.functions = value;
  return true;
}

bool read_level(Parser& p, const std::string& value) {
  if (value.size() != 1 || value[0] < '0' || value[0] > '3') {
    return p.fail("-O takes a level from 0 to 3; got '-O" + value + "'");
  }
  p.options.passes.optimisation = value[0] - '0';
  return true;
}

bool read_point(Parser& p, const std::string& value) {
  for (const std::string& part : split(value, ',')) {
    int64_t number = 0;
    const bool sized =
        part.size() > 2 && part[1] == '=' && read_number(part.substr(2), 1, int64_t{1} << 31, number);
    const size_t symbol = part.empty() ? std::string::npos : std::string("BTS").find(part[0]);
    if (!sized || symbol == std::string::npos) {
      return p.fail("--at takes sizes such as B=4,T=256 or B=4,T=256,S=64; got '" + part + "'");
    }
    p.options.passes.point.values[symbol] = number;
    p.options.tokens_given |= part[0] == 'T';
    p.options.source_given |= part[0] == 'S';
    // What is a symbol more in an encoder-decoder follows T where it is not said.
    if (part[0] == 'T' && value.find("S=") == std::string::npos)
      p.options.passes.point[ir::Symbol::S] = number;
  }
  p.options.passes.point[ir::Symbol::C] = p.options.passes.point[ir::Symbol::T];
  return p.options.point_given = true;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const passes::Pass& pass : passes::all_passes()) names.emplace_back(pass.name);
  return names;
}

bool known_pass(Parser& p, const std::string& flag, const std::string& name,
                std::vector<std::string> also = {}) {
  std::vector<std::string> names = pass_names();
  names.insert(names.end(), also.begin(), also.end());
  if (std::count(names.begin(), names.end(), name)) return true;
  return p.fail(flag + ": unknown pass '" + name + "'" + suggestion(name, names) +
                " (transformerc help passes lists them)");
}

bool read_disable(Parser& p, const std::string& value) {
  for (const std::string& name : split(value, ',')) {
    if (!known_pass(p, "--disable", name, {"reuse-memory"})) return false;
    if (name != "reuse-memory" && !passes::can_be_disabled(name))
      return p.fail("--disable: the pass '" + name + "' is mandatory");
    p.options.passes.disabled.push_back(name);
  }
  return true;
}

bool read_print(Parser& p, const std::string& flag, const std::string& value,
                std::vector<std::string>& list) {
  for (const std::string& name : split(value, ',')) {
    if (!known_pass(p, flag, name, {"all"})) return false;
    list.push_back(name);
  }
  return true;
}

bool read_filter(Parser& p, const std::string& value) {
  std::string fault;
  if (!llvm::Regex(value).isValid(fault))
    return p.fail("--print-filter: '" + value + "' is no regular expression: " + fault);
  p.options.passes.print_filter = value;
  return true;
}

bool read_warning(Parser& p, const std::string& value) {
  const std::vector<std::string> known = {"unused-block", "unused-key"};
  if (value == "error") return p.options.warnings_are_errors = true;
  const bool off = StringRef(value).starts_with("no-");
  const std::string name = value.substr(off ? 3 : 0);
  if (!std::count(known.begin(), known.end(), name)) {
    return p.fail("-W takes error, or the name of a warning, with no- before it to switch it off: " +
                  joined(known) + "; got '-W" + value + "'" + suggestion(name, known));
  }
  std::erase(p.options.disabled_warnings, name);  // every warning is on unless it was switched off
  if (off) p.options.disabled_warnings.push_back(name);
  return true;
}

bool read_threads(Parser& p, const std::string& value) {
  int64_t number = 0;
  if (!read_number(value, 0, 1024, number))
    return p.fail("--threads takes a number from 0 to 1024; got '" + value + "'");
  p.options.threads = static_cast<int>(number);
  return true;
}

bool read_seconds(Parser& p, const std::string& value) {
  double number = 0;
  if (StringRef(value).getAsDouble(number) || !(number > 0) || number > 600) {
    return p.fail("--seconds takes a number above 0, at most 600; got '" + value + "'");
  }
  p.options.seconds = number;
  return true;
}

bool read_figures(Parser& p, const std::string& value) {
  for (const std::string& name : split(value, ',')) {
    if (!one_of(p, "--figures", name, {"forward", "padded", "step", "padded-step", "decode", "drift"})) return false;
    p.options.figures.push_back(name);
  }
  return true;
}

constexpr unsigned bit(Verb verb) { return 1u << static_cast<int>(verb); }
constexpr unsigned kCompile = bit(Verb::Compile), kTrain = bit(Verb::Train), kBench = bit(Verb::Bench),
                   kVerify = bit(Verb::Verify), kNorms = bit(Verb::Norms),
                   kEvery = kCompile | kTrain | kBench | kVerify | kNorms;

// clang-format off
constexpr Flag kFlags[] = {
  {"-o", "PATH", kCompile, "folder for the outputs (default: .); with one output kind a file, or - for a text kind",
   [](Parser& p, const std::string& v) { p.options.output = v; return p.options.output_given = true; }},
  {"--emit", "KIND[,KIND...]", kCompile, "lib so obj kernels header python toml ir dot llvm llvm-opt asm report; ir and dot take a\n"
   "phase: --emit=ir:joint (default: lib,so,header,python)", read_emit},
  {"--set", "KEY=VALUE", kEvery, "override one key of the description: --set model.layers=2", read_set},
  {"--tap", "GLOB", kCompile | kVerify | kTrain | kBench, "show a value to callers, besides those of [debug] taps: --tap='layers.*.attn.weights'", read_tap},
  {"--precision", "f32|f64", kEvery, "element type of parameters and values (default: f32)", read_precision},
  {"--cpu", "NAME", kEvery, "native, x86-64-v2, -v3, -v4, or a CPU of LLVM's (default: native)", read_cpu},
  {"--functions", "infer|train|all", kCompile, "which entries the library has (default: all)", read_functions},
  {"-O", "0|1|2|3", kEvery, "0: mandatory passes only, 1: graph passes, 2: default, 3: as 2 for now", read_level},
  {"--at", "B=4,T=256[,S=64]", kEvery, "sizes for reports and size-dependent choices (default: B=8, T=min(max_seq,256))", read_point},
  {"--disable", "PASS[,PASS]", kCompile | kVerify | kBench, "leave passes out; reuse-memory gives each buffer its own place", read_disable},
  {"--stop-after", "PASS", kCompile, "stop there and print the graph as it stands",
   [](Parser& p, const std::string& v) { p.options.passes.stop_after = v; return known_pass(p, "--stop-after", v); }},
  {"--print-before", "PASS|all", kCompile, "print the graph before a pass",
   [](Parser& p, const std::string& v) { return read_print(p, "--print-before", v, p.options.passes.print_before); }},
  {"--print-after", "PASS|all", kCompile, "print the graph after a pass",
   [](Parser& p, const std::string& v) { return read_print(p, "--print-after", v, p.options.passes.print_after); }},
  {"--print-filter", "REGEX", kCompile, "print entries whose name matches only",
   read_filter},
  {"--dump-dir", "DIR", kCompile, "one file per pass that changed something",
   [](Parser& p, const std::string& v) { p.options.passes.dump_dir = v; return true; }},
  {"--time-passes", nullptr, kCompile, "how long each pass took",
   [](Parser& p, const std::string&) { return p.options.passes.time_passes = true; }},
  {"--verify-each", nullptr, kCompile, "check the graphs after every pass",
   [](Parser& p, const std::string&) { return p.options.passes.verify_each = true; }},
  {"--remarks", nullptr, kEvery, "say what the passes decided and why",
   [](Parser& p, const std::string&) { return p.options.remarks = true; }},
  {"--depfile", "PATH", kCompile, "write the files that were read as a Makefile rule",
   [](Parser& p, const std::string& v) { p.options.depfile = v; return true; }},
  {"--check", nullptr, kCompile, "check the description and write nothing",
   [](Parser& p, const std::string&) { return p.options.check = true; }},
  {"-W", "error|NAME|no-NAME", kEvery, "warnings: all as errors, one on, one off", read_warning},
  {"--diagnostics", "text|json", kEvery, "form of errors, warnings and remarks (default: text)",
   [](Parser& p, const std::string& v) { p.options.json_diagnostics = v == "json";
                                         return one_of(p, "--diagnostics", v, {"text", "json"}); }},
  {"--json", nullptr, kVerify | kBench | kNorms, "print the result as JSON",
   [](Parser& p, const std::string&) { return p.options.json = true; }},
  {"--threads", "N", kBench | kTrain, "threads to use (default: 0, all cores)", read_threads},
  {"--seconds", "X", kBench, "how long each figure is measured (default: 2)", read_seconds},
  {"--figures", "NAME[,NAME]", kBench, "forward, step, decode; padded, padded-step: those of a batch where half of\n"
   "all positions are padding; drift: the 1000th step beside the 10th\n"
   "(default: forward, step and decode, where the model has them)", read_figures},
  {"--kernels", nullptr, kBench, "each kernel's time, FLOPs, bytes and share of the nearer roof",
   [](Parser& p, const std::string&) { return p.options.kernels = true; }},
  {"--target", "TRIPLE", kCompile, nullptr, [](Parser& p, const std::string&) { return p.fail("not supported yet: --target"); }},
  {"-g", nullptr, kCompile, nullptr, [](Parser& p, const std::string&) { return p.fail("not supported yet: -g"); }},
};

constexpr VerbName kVerbs[] = {
  {"train", Verb::Train, "train a model on its [run] settings, and show a sample"},
  {"bench", Verb::Bench, "measure forward and training step beside this machine's peak"},
  {"verify", Verb::Verify, "compare the compiled code with the float64 interpreter"},
  {"norms", Verb::Norms, "activations and gradients per layer at initialisation, for each norm placement"},
  {"help", Verb::Help, "help VERB, help passes"},
  {"generate", std::nullopt, nullptr}, {"eval", std::nullopt, nullptr}, {"import", std::nullopt, nullptr},
  {"export", std::nullopt, nullptr},   {"new", std::nullopt, nullptr},  {"opt", std::nullopt, nullptr},
  {"run", std::nullopt, nullptr},      {"explain", std::nullopt, nullptr}, {"schema", std::nullopt, nullptr},
};
// clang-format on

}  // namespace

std::span<const Flag> all_flags() { return kFlags; }
std::span<const VerbName> all_verbs() { return kVerbs; }

}  // namespace tfc::tools
