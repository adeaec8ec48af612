// The command line: what was asked for, checked as far as it can be without reading a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/load.h"
#include "ir/diagnostic.h"
#include "ir/module.h"
#include "passes/pass.h"

namespace tfc::tools {

enum ExitStatus : int {
  kDone = 0,
  kInputIsWrong = 1,
  kUsageIsWrong = 2,
  kCompilerFault = 70,
  kFileTrouble = 74
};

enum class Emit : uint8_t { Lib, So, Obj, Kernels, Header, Python, Toml, Ir, Dot, Llvm, LlvmOpt, Asm, Report };

struct EmitRequest {
  Emit kind = Emit::Lib;
  ir::Phase phase = ir::Phase::Planned;  // ir, dot
  friend bool operator==(const EmitRequest&, const EmitRequest&) = default;
};

/// What the first word asks for. Compile has no word: the first argument is the file.
enum class Verb : uint8_t { Compile, Train, Bench, Verify, Norms, Help, Version };

struct Options {
  Verb verb = Verb::Compile;
  std::string help_topic;    // of `help VERB`
  std::string input;         // MODEL.toml or FILE.tcir
  std::string output = ".";  // -o
  bool output_given = false;
  std::vector<EmitRequest> emit;  // in the order given; the default is lib, so, header, python
  bool emit_given = false;
  std::vector<frontend::Override> overrides;  // --set, --tap and --edit
  ir::DType precision = ir::DType::F32;
  bool precision_given = false;
  std::string cpu = "native";
  bool cpu_given = false;
  passes::PassOptions passes;  // optimisation, point, functions, disabled, printing
  bool point_given = false, tokens_given = false, source_given = false;  // --at, and T and S in it
  std::string depfile;
  bool check = false;
  bool remarks = false, warnings_are_errors = false;
  std::vector<std::string> disabled_warnings;
  bool json_diagnostics = false;
  bool json = false;   // verify, bench, norms: their result as JSON
  int threads = 0;     // bench, train; 0: all cores
  double seconds = 2;  // bench: how long each figure is measured
  std::vector<std::string> figures;  // bench: which ones; none: all that the model has
  bool kernels = false;              // bench: each kernel's share
};

/// Reads the arguments after the program's name. On a mistake `error` says what is wrong and what would be
/// right.
std::optional<Options> parse_options(const std::vector<std::string>& arguments, std::string& error);

/// `transformerc help`, `transformerc help VERB`.
std::string help_text(const std::string& topic);

/// The verbs there are, those to come included.
const std::vector<std::string>& verb_names();

}  // namespace tfc::tools
