#include "codegen/header.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/FormatVariadic.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "ir/edits.h"
#include "ir/heads.h"
#include "ir/taps.h"

extern "C" const char tfc_text_api_h[];
extern "C" const uint64_t tfc_text_api_h_size;

namespace tfc::codegen {

namespace {

using llvm::formatv;

struct Function {
  std::string_view result, suffix, parameters;
};

constexpr Function kApi[] = {
#define TC_API(result, suffix, parameters) {#result, #suffix, #parameters},
#include "runtime/symbols.def"
};
constexpr Function kCore[] = {
#define TC_CORE(result, suffix, parameters) {#result, #suffix, #parameters},
#include "runtime/symbols.def"
};

/// What trains: not declared where the library was compiled without (--functions=infer).
constexpr std::string_view kTraining[] = {"backward",  "accumulate", "vjp",        "step",     "train_step",
                                          "zero_grad", "core_train", "core_vjp", "core_vjp_heads", "core_step"};

/// Entries in the order of TC_ENTRY_*, with the vocabulary's names.
constexpr std::string_view kEntries[] = {"infer", "last", "loss",   "logprobs", "train",
                                         "vjp",   "step", "decode", "encode",   "merge"};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class HeaderWriter {
 public:
  HeaderWriter(const ir::Module& module, uint64_t build_id) : module_(module), build_id_(build_id) {}

  std::string write();

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  void define(std::string_view suffix, int64_t value, std::string_view comment = {});
  void introduction();
  void sizes();
  void parameters();
  void enumerations();
  void numbered(std::string_view what, const std::string& comment, const std::vector<std::string>& names);
  void functions();
  void declare(const Function& function);
  int64_t fact(std::string_view key) const { return module_.facts.integer(key, 0); }

  const ir::Module& module_;
  uint64_t build_id_;
  std::string text_;
};

void HeaderWriter::define(std::string_view suffix, int64_t value, std::string_view comment) {
  const std::string number = value > INT32_MAX ? formatv("INT64_C({0})", value).str() : std::to_string(value);
  line(formatv("#define {0}_{1} {2}{3}", module_.name, suffix, number,
               comment.empty() ? "" : formatv(" /* {0} */", comment).str())
           .str());
}

void HeaderWriter::introduction() {
  line(formatv(
           "/* {0}.h: a transformer compiled by transformerc.\n"
           " *\n"
           " * This file is generated; it carries no obligation of any licence, do with it what you like.\n"
           " * Link with lib{0}.a (and -lm -lpthread), or with or through lib{0}.so. */\n"
           "#ifndef TRANSFORMERC_MODEL_{0}\n"
           "#define TRANSFORMERC_MODEL_{0}\n",
           module_.name)
           .str());
  text_ += std::string_view(tfc_text_api_h, tfc_text_api_h_size);
  line("");
}

void HeaderWriter::sizes() {
  const std::string& name = module_.name;
  line(formatv("/* -- {0} ({1}) */\n", name, module_.facts.text("kind")).str());
  line(formatv("typedef {0} {1}_real;", module_.real == ir::DType::F64 ? "double" : "float", name).str());
  line(formatv("#define {0}_BUILD_ID UINT64_C(0x{1})", name, llvm::utohexstr(build_id_, true)).str());
  define("D_MODEL", fact("d_model"), "D");
  define("VOCAB", fact("vocab"), "V; 0: floats or images in place of tokens");
  define("OUT_WIDTH", fact("out_width"), "the last dimension of the output");
  define("MAX_SEQ", fact("max_seq"), "0: no limit");
  if (module_.facts.text("kind") == "encoder-decoder") {
    define("SRC_VOCAB", fact("src_vocab"));
    define("ENCODER_LAYERS", fact("encoder_layers"));
    define("DECODER_LAYERS", fact("decoder_layers"));
  } else {
    define("LAYERS", fact("layers"), "L");
  }
  if (fact("types") > 0) define("TYPES", fact("types"));
  if (fact("classes") > 0) define("CLASSES", fact("classes"));
  line(
      formatv("#define {0}_IGNORE_INDEX ({1}) /* a target that does not count */", name, fact("ignore_index"))
          .str());
  for (auto [key, suffix] : {std::pair{"batch", "FIXED_B"},
                             {"seq", "FIXED_T"},
                             {"src_seq", "FIXED_S"},
                             {"channels", "IMAGE_CHANNELS"},
                             {"height", "IMAGE_HEIGHT"},
                             {"width", "IMAGE_WIDTH"}}) {
    if (fact(key) > 0) define(suffix, fact(key));
  }
  line("");
}

void HeaderWriter::parameters() {
  define("PARAMETERS", module_.parameter_count(), "numbers in all");
  define("PARAMETER_BLOCK", module_.parameter_block(), "elements of the block, with padding (zero for ever)");
  define("GRADIENT_BLOCK", module_.gradient_block(),
         "elements of gradients and of each moment: what is frozen comes last");
  define("PARAMETER_COUNT", static_cast<int64_t>(module_.parameters.size()), "P, lines of the table");
  line(
      "/* The parameter table: X(index, name, rank, shape (4, filled up with 1), "
      "offset, elements,\n"
      " * decayed, frozen), offset and elements in elements. Linear weights are [out, in], row-major. */");
  line(formatv("#define {0}_PARAMETER_TABLE(X) \\", module_.name).str());
  int index = 0;
  for (const ir::Parameter& parameter : module_.parameters) {
    std::string shape;
    for (size_t i = 0; i < 4; ++i) {
      shape += formatv(" {0},", i < parameter.shape.size() ? parameter.shape[i] : 1).str();
    }
    const bool last = static_cast<size_t>(index) + 1 == module_.parameters.size();
    line(formatv("  X({0}, \"{1}\", {2},{3} {4}, {5}, {6}, {7}){8}", index, parameter.name,
                 parameter.shape.size(), shape, parameter.offset, parameter.elements(),
                 int{parameter.decayed}, int{parameter.frozen}, last ? "" : " \\")
             .str());
    ++index;
  }
  line("");
}

void HeaderWriter::enumerations() {
  const std::string& name = module_.name;
  line("/* Heads: the order of outputs, targets and grad_outputs. */");
  std::string heads;
  for (const ir::HeadFacts& head : ir::heads_of(module_.facts)) {
    heads += formatv("{0}_HEAD_{1}, ", name, head.name.empty() ? upper(head.type) : head.name).str();
  }
  line(formatv("enum {{ {0}{1}_HEAD_COUNT };", heads, name).str());
  line("/* The entries that this library has. */");
  std::string entries;
  for (std::string_view entry : kEntries) {
    if (!module_.entry(entry)) continue;
    entries +=
        formatv("{0}  {1}_ENTRY_{2} = TC_ENTRY_{2}", entries.empty() ? "" : ",\n", name, upper(entry)).str();
  }
  line("enum {\n" + entries + "\n};\n");
}

/// The numbers by which `tap` and `set_edit` know values.
void HeaderWriter::numbered(std::string_view what, const std::string& comment, const std::vector<std::string>& names) {
  if (names.empty()) return;
  define(std::string(what) + "_COUNT", static_cast<int64_t>(names.size()));
  line("/* " + comment + ": X(index, name). */");
  line(formatv("#define {0}_{1}_TABLE(X) \\", module_.name, what).str());
  for (size_t i = 0; i < names.size(); ++i)
    line(formatv("  X({0}, \"{1}\"){2}", i, names[i], i + 1 == names.size() ? "" : " \\").str());
  line("");
}

void HeaderWriter::declare(const Function& function) {
  const bool trains =
      std::find(std::begin(kTraining), std::end(kTraining), function.suffix) != std::end(kTraining);
  if (trains && !module_.entry("step")) return;
  if (function.suffix == "merge_lora" && !module_.entry("merge")) return;
  std::string parameters(function.parameters);
  parameters = replaced(std::move(parameters), " * ", " *");
  const bool pointer = function.result.ends_with('*');
  line(formatv("{0}{1}{2}_{3}{4};", function.result, pointer ? "" : " ", module_.name, function.suffix,
               parameters)
           .str());
}

void HeaderWriter::functions() {
  const std::string& name = module_.name;
  line("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  line(formatv("/* The table of functions. NULL where header and library are not of one build: pass "
               "{0}_BUILD_ID, or 0 to\n"
               " * accept any build. */\n"
               "const tc_api *{0}_api(uint64_t build_id);\n",
               name)
           .str());
  line("/* The same functions by name; tc_api says what each does. */");
  for (const Function& function : kApi) declare(function);
  line("");
  line(formatv("/* The core: stateless and re-entrant, over memory that the caller owns (tc_core, tc_batch). "
               "workspace_bytes:\n"
               " * of an entry ({0}_ENTRY_...) at B, T, S for that many threads, exact; decode's with a "
               "cache of MAX_SEQ (T where\n"
               " * there is none), decode_workspace_bytes with any capacity. core_train adds to core.grads: "
               "gradients of the\n"
               " * summed loss, or of the mean; core_step takes its divisor from settings.count, and `step` "
               "from 1 on.\n"
               " * sum and count have a number for each head; of several heads the loss is the sum of loss_weight * sum\n"
               " * (or loss_weight * sum / count, the mean), and outputs are those of the functions that end in _heads. */",
               name)
           .str());
  for (const Function& function : kCore) declare(function);
  line("\n#ifdef __cplusplus\n}\n#endif");
  line(formatv("#endif /* TRANSFORMERC_MODEL_{0} */", name).str());
}

std::string HeaderWriter::write() {
  introduction();
  sizes();
  parameters();
  enumerations();
  numbered("TAP", "The values that [debug] taps shows", ir::tapped_names(module_));
  numbered("EDIT", "The values that [debug] edits lets callers change", ir::edited_names(module_));
  functions();
  return std::move(text_);
}

}  // namespace

std::string c_header(const ir::Module& planned, uint64_t build_id) {
  return HeaderWriter(planned, build_id).write();
}

}  // namespace tfc::codegen
