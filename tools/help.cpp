// The help texts, printed from the tables of flags, verbs and passes.
#include "llvm/Support/FormatVariadic.h"
#include "tools/flags.h"

namespace tfc::tools {
namespace {

std::string flag_help(const Flag& flag) {
  std::string head = std::string("  ") + flag.name;
  if (flag.value) head += (flag.is_prefix() ? "" : flag.name[1] == '-' ? "=" : " ") + std::string(flag.value);
  std::string text =
      head.size() < 30 ? head + std::string(30 - head.size(), ' ') : head + "\n" + std::string(30, ' ');
  for (const char* c = flag.help; *c; ++c)
    text += *c == '\n' ? "\n" + std::string(30, ' ') : std::string(1, *c);
  return text + "\n";
}

std::string passes_help() {
  std::string text = "passes, in order (* mandatory):\n";
  for (const passes::Pass& pass : passes::all_passes()) {
    std::string name = std::string(pass.mandatory ? "* " : "  ") + std::string(pass.name);
    name.resize(std::max<size_t>(name.size() + 1, 26), ' ');
    text += name + std::string(pass.summary) + "\n";
  }
  return text;
}

}  // namespace

std::string help_text(const std::string& topic) {
  if (topic == "passes") return passes_help();
  Verb verb = Verb::Compile;
  std::string text =
      "usage: transformerc MODEL.toml [-o PATH] [flags]   writes libNAME.a libNAME.so NAME.h NAME.py\n"
      "       transformerc FILE.tcir [-o PATH] [flags]    goes on from an IR dump\n";
  if (topic.empty()) {
    for (const VerbName& name : all_verbs()) {
      if (name.summary)
        text += llvm::formatv("       transformerc {0,-8} {1}\n", name.name, name.summary).str();
    }
  }
  for (const VerbName& name : all_verbs()) {
    if (topic != name.name || topic == "help") continue;
    if (!name.verb) return "not supported yet: " + topic + "\n";
    verb = *name.verb;
    text = "usage: transformerc " + topic + " MODEL.toml [flags]   " + name.summary + "\n";
  }
  text += "\nflags:\n";
  for (const Flag& flag : all_flags()) {
    if (flag.help && flag.for_verb(verb)) text += flag_help(flag);
  }
  return text +
         "\nexit status: 0 done, 1 the input is wrong, 2 the command line is wrong, 74 a file cannot be read "
         "or "
         "written, 70 a fault of the compiler\n";
}

}  // namespace tfc::tools
