#include "codegen/python_module.h"

#include <llvm/Support/FormatVariadic.h>

#include <string_view>
#include <vector>

#include "ir/edits.h"
#include "ir/heads.h"
#include "ir/taps.h"

extern "C" const char tfc_text_module_py[];
extern "C" const uint64_t tfc_text_module_py_size;

namespace tfc::codegen {

namespace {

using llvm::formatv;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string tuple(const std::vector<std::string>& items) {
  std::string text = "(";
  for (const std::string& item : items) text += item + ", ";
  if (items.size() > 1) text.resize(text.size() - 2);
  if (items.size() == 1) text.resize(text.size() - 1);
  return text + ")";
}

std::string quoted_tuple(std::vector<std::string> items) {
  for (std::string& item : items) item = '"' + item + '"';
  return tuple(items);
}

/// What every call needs, in the order in which inputs go by position.
std::vector<std::string> required_inputs(const ir::Attributes& facts) {
  const bool ids = facts.integer("vocab", 0) > 0;
  std::vector<std::string> inputs;
  if (facts.text("kind") == "encoder-decoder") {
    inputs = {facts.flag("memory_input") ? "memory" : "src", "tgt"};
  } else {
    inputs = {facts.integer("channels", 0) > 0 ? "image" : ids ? "tokens" : "x"};
  }
  if (facts.integer("types", 0) > 0) inputs.push_back("types");
  return inputs;
}

std::vector<std::string> optional_inputs(const ir::Attributes& facts) {
  const bool two_sides = facts.text("kind") == "encoder-decoder";
  std::vector<std::string> inputs;
  for (const char* name : {"mask", "lengths", "positions", "documents"}) {
    if (!facts.flag(name)) continue;
    inputs.push_back(name);
    if (two_sides) inputs.push_back(std::string("src_") + name);
  }
  if (facts.flag("prefix")) inputs.push_back("prefix");
  return inputs;
}

/// Names of the library's entry points with their numbers (EntryId of runtime/plan.h).
std::string entries(const ir::Module& module) {
  const std::vector<std::string> names = {"infer", "last", "loss",   "logprobs", "train",
                                          "vjp",   "step", "decode", "encode",   "merge"};
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!module.entry(names[i])) continue;
    text += formatv("{0}\"{1}\": {2}", text.empty() ? "" : ", ", names[i], i).str();
  }
  return "{" + text + "}";
}

std::string parameters(const ir::Module& module) {
  std::string text = "[\n";
  for (const ir::Parameter& parameter : module.parameters) {
    std::vector<std::string> shape;
    for (int64_t size : parameter.shape) shape.push_back(std::to_string(size));
    text += formatv("    (\"{0}\", {1}, {2}),\n", parameter.name, tuple(shape),
                    parameter.frozen ? "True" : "False")
                .str();
  }
  return text + "]";
}

/// One line for each: name, type, loss, the letters of its rows, width.
std::string heads(const ir::Attributes& facts) {
  std::string text = "[\n";
  for (const ir::HeadFacts& head : ir::heads_of(facts)) {
    text += formatv("    (\"{0}\", \"{1}\", \"{2}\", \"{3}\", {4}),\n", head.name, head.type, head.loss,
                    !head.per_token ? "B" : head.source ? "BS" : "BT", head.out)
                .str();
  }
  return text + "]";
}

std::string constants(const ir::Module& module, uint64_t build_id) {
  const ir::Attributes& facts = module.facts;
  const int64_t vocab = facts.integer("vocab", 0);
  std::string text =
      "# What was compiled. VOCAB 0: floats or images in place of tokens; MAX_SEQ 0: no limit.\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    text += formatv("{0} = {1}\n", name, value).str();
  };
  line("NAME", '"' + module.name + '"');
  line("BUILD_ID", formatv("{0:x}", build_id).str());
  line("REAL", module.real == ir::DType::F64 ? "\"float64\"" : "\"float32\"");
  line("KIND", '"' + facts.text("kind") + '"');
  line("HEAD", '"' + facts.text("head") + '"');
  line("D_MODEL", std::to_string(facts.integer("d_model")));
  line("OUT_WIDTH", std::to_string(facts.integer("out_width")));
  line("VOCAB", std::to_string(vocab));
  line("SRC_VOCAB", std::to_string(facts.integer("src_vocab", vocab)));
  line("MAX_SEQ", std::to_string(facts.integer("max_seq", 0)));
  std::vector<std::string> image;  // channels, height, width
  for (const char* size : {"channels", "height", "width"}) {
    if (facts.integer(size, 0) > 0) image.push_back(std::to_string(facts.integer(size)));
  }
  line("IMAGE", tuple(image));
  line("INPUTS", quoted_tuple(required_inputs(facts)));
  line("HEADS", heads(facts));
  line("MAIN_HEAD", std::to_string(ir::main_head(ir::heads_of(facts))));
  line("WEIGHTS", facts.flag("weights") ? "True" : "False");
  line("OPTIONAL_INPUTS", quoted_tuple(optional_inputs(facts)));
  line("ENTRIES", entries(module));
  line("TAPS", quoted_tuple(ir::tapped_names(module)));
  line("EDITS", quoted_tuple(ir::edited_names(module)));
  line("PARAMETERS", parameters(module) + "  # name, shape, frozen");
  return text;
}

}  // namespace

std::string python_module(const ir::Module& planned, uint64_t build_id) {
  std::string text(tfc_text_module_py, tfc_text_module_py_size);
  text = replaced(std::move(text), "# @CONSTANTS@\n", constants(planned, build_id));
  return replaced(std::move(text), "@NAME@", planned.name);
}

}  // namespace tfc::codegen
