// Walks the arguments along the table of flags.
#include "tools/options.h"

#include <algorithm>

#include "llvm/ADT/StringRef.h"
#include "tools/flags.h"

namespace tfc::tools {

using llvm::StringRef;

std::string verb_text(Verb verb) {
  for (const VerbName& name : all_verbs()) {
    if (name.verb == verb) return name.name;
  }
  return "";
}

namespace {

// The flag that an argument names, and its value where it stands in the same argument.
const Flag* find_flag(const std::string& argument, std::optional<std::string>& value) {
  for (const Flag& flag : all_flags()) {
    const StringRef name = flag.name;
    if (flag.is_prefix() && StringRef(argument).starts_with(name)) {
      value = argument.substr(name.size());
      return &flag;
    }
    if (name == argument) return &flag;
    if (StringRef(argument).starts_with(name) && argument[name.size()] == '=') {
      value = argument.substr(name.size() + 1);
      return &flag;
    }
  }
  return nullptr;
}

bool unknown_flag(Parser& p, const std::string& argument) {
  std::vector<std::string> known;
  for (const Flag& flag : all_flags()) known.push_back(flag.name);
  known.insert(known.end(), {"--help", "--version"});
  const std::string name = argument.substr(0, argument.find('='));
  return p.fail("unknown flag " + name + suggestion(name, known));
}

bool read_flag(Parser& p, const std::vector<std::string>& arguments, size_t& at) {
  std::optional<std::string> value;
  const Flag* flag = find_flag(arguments[at], value);
  if (!flag) return unknown_flag(p, arguments[at]);
  const std::string name = flag->name;
  if (!flag->for_verb(p.options.verb)) {
    const std::string verb = verb_text(p.options.verb);
    return p.fail(verb.empty() ? "only a verb takes " + name + " (transformerc help)"
                               : verb + " does not take " + name + " (transformerc help " + verb + ")");
  }
  if (!flag->value && value) return p.fail(name + " takes no value; got '" + *value + "'");
  if (flag->value && !value) {
    if (at + 1 >= arguments.size()) return p.fail(name + " needs a value: " + name + " " + flag->value);
    value = arguments[++at];
  }
  if (flag->value && value->empty() && !flag->is_prefix()) {
    return p.fail(name + " needs a value: " + name + "=" + flag->value);
  }
  return flag->apply(p, value.value_or(""));
}

bool read_verb(Parser& p, const std::string& word, bool& is_verb) {
  is_verb = false;
  for (const VerbName& name : all_verbs()) {
    if (word != name.name) continue;
    if (!name.verb) return p.fail("not supported yet: " + word);
    p.options.verb = *name.verb;
    is_verb = true;
  }
  return true;
}

bool is_description(StringRef path) { return path.ends_with(".toml"); }

bool read_input(Parser& p, const std::string& word) {
  Options& options = p.options;
  if (!options.input.empty()) {
    return p.fail("one file at a time: got '" + options.input + "' and '" + word + "'");
  }
  if (!is_description(word) && !StringRef(word).ends_with(".tcir")) {
    const std::string verb =
        word.find_first_of("./") == std::string::npos ? suggestion(word, verb_names()) : "";
    return p.fail("'" + word + "' is neither a description (.toml) nor an IR dump (.tcir)" +
                  (options.verb == Verb::Compile ? verb : ""));
  }
  options.input = word;
  return true;
}

bool is_text(Emit kind) {
  return kind != Emit::Lib && kind != Emit::So && kind != Emit::Obj && kind != Emit::Kernels;
}

// What flags ask for together.
bool check_together(Parser& p) {
  Options& options = p.options;
  if (options.input.empty()) {
    return p.fail("no input: transformerc " +
                  (verb_text(options.verb) + " ").substr(options.verb == Verb::Compile) +
                  "MODEL.toml (transformerc help says more)");
  }
  if (!is_description(options.input)) {
    if (options.verb != Verb::Compile)
      return p.fail(verb_text(options.verb) + " reads a description (.toml), not an IR dump");
    if (!options.overrides.empty()) return p.fail("--set, --tap and --edit override keys of a description; an IR dump has none");
    if (options.precision_given)
      return p.fail("--precision is a description's choice; an IR dump has made it");
  }
  if (options.passes.functions == "infer" && options.verb != Verb::Compile)
    return p.fail("--functions is for compiling");
  if (!options.passes.stop_after.empty() && options.emit_given) {
    return p.fail("--stop-after prints the graph as it stands; it goes without --emit");
  }
  if (options.check && options.emit_given) return p.fail("--check writes nothing; it goes without --emit");
  if (options.emit.empty()) {
    options.emit = {{Emit::Lib}, {Emit::So}, {Emit::Header}, {Emit::Python}};
  }
  if (options.output == "-") {
    const bool stopped = !options.passes.stop_after.empty();
    if (!stopped && (options.emit.size() != 1 || !is_text(options.emit[0].kind))) {
      return p.fail(
          "-o - prints one text kind: header, python, toml, ir, dot, llvm, llvm-opt, asm or report");
    }
  }
  return true;
}

bool parse(Parser& p, const std::vector<std::string>& arguments) {
  size_t first = 0;
  if (!arguments.empty()) {
    bool is_verb = false;
    if (!read_verb(p, arguments[0], is_verb)) return false;
    first = is_verb ? 1 : 0;
  }
  if (p.options.verb == Verb::Help) {
    if (arguments.size() > 1) p.options.help_topic = arguments[1];
    if (arguments.size() > 2) return p.fail("help takes one verb");
    const bool known = p.options.help_topic.empty() || p.options.help_topic == "passes" ||
                       std::count(verb_names().begin(), verb_names().end(), p.options.help_topic);
    return known || p.fail("help: unknown verb '" + p.options.help_topic + "'" +
                           suggestion(p.options.help_topic, verb_names()));
  }
  for (size_t at = first; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (argument == "--help" || argument == "-h") {
      p.options.help_topic = verb_text(p.options.verb);
      p.options.verb = Verb::Help;
      return true;
    }
    if (argument == "--version") {
      p.options.verb = Verb::Version;
      return true;
    }
    const bool is_flag = argument.size() > 1 && argument[0] == '-';
    if (!(is_flag ? read_flag(p, arguments, at) : read_input(p, argument))) return false;
  }
  return check_together(p);
}

}  // namespace

std::optional<Options> parse_options(const std::vector<std::string>& arguments, std::string& error) {
  Parser parser;
  if (parse(parser, arguments)) return parser.options;
  error = parser.error;
  return std::nullopt;
}

const std::vector<std::string>& verb_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const VerbName& verb : all_verbs()) list.push_back(verb.name);
    return list;
  }();
  return names;
}

}  // namespace tfc::tools
