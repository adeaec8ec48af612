// NAME.h compiles as C99 and C++ without a warning, twice in one file, and tells what the model is.
#include "codegen/header.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tfc::codegen {
namespace {

ir::Module small_model(const std::string& name) {
  ir::Module module;
  module.name = name;
  module.phase = ir::Phase::Planned;
  module.facts.set("kind", std::string("decoder"));
  module.facts.set("head", std::string("lm"));
  for (auto [key, value] : {std::pair<const char*, int64_t>{"d_model", 8},
                            {"vocab", 11},
                            {"out_width", 11},
                            {"max_seq", 16},
                            {"layers", 2},
                            {"ignore_index", -100},
                            {"seq", 16}}) {
    module.facts.set(key, value);
  }
  ir::Parameter table, bias;
  table.name = "tok_emb.weight";
  table.shape = {11, 8};
  table.decayed = true;
  bias.name = "head.bias";
  bias.shape = {11};
  module.parameters = {table, bias};
  ir::lay_out_parameters(module);
  for (const char* entry : {"infer", "train", "step"}) module.entries.push_back({entry, {}, std::nullopt});
  return module;
}

class HeaderTest : public ::testing::Test {
 protected:
  HeaderTest()
      : folder_(std::filesystem::temp_directory_path() / ("tfc_header_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~HeaderTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  int compile(const std::string& command, const std::string& source) {
    return std::system(
        (command + " -Wall -Wextra -pedantic -Werror -fsyntax-only " + (folder_ / source).string()).c_str());
  }

  std::filesystem::path folder_;
};

TEST_F(HeaderTest, CompilesAsC99AndCpp) {
  write("tiny.h", c_header(small_model("tiny"), 0x1234));
  write("other.h", c_header(small_model("other"), 0x5678));
  const std::string use =
      "#include \"tiny.h\"\n#include \"other.h\"\n#include \"tiny.h\"\n"
      "#define LINE(index, name, rank, d0, d1, d2, d3, offset, elements, decayed, frozen) {name, elements},\n"
      "static const struct { const char *name; long elements; } table[tiny_PARAMETER_COUNT] = {\n"
      "  tiny_PARAMETER_TABLE(LINE)\n};\n"
      "int main(void) {\n"
      "  const tc_api *a = tiny_api(tiny_BUILD_ID), *b = other_api(0);\n"
      "  tiny_real x = 0;\n"
      "  return a == b || table[1].elements != 11 || x != 0 || (int)tiny_ENTRY_TRAIN != (int)TC_ENTRY_TRAIN "
      "|| tiny_HEAD_LM != 0 ||\n"
      "         tiny_core_forward(0, 0, 0, 0) != TC_OK;\n}\n";
  write("use.c", use);
  write("use.cpp", use);
  EXPECT_EQ(compile("cc -std=c99", "use.c"), 0);
  EXPECT_EQ(compile("c++ -std=c++11 -x c++", "use.cpp"), 0);
}

TEST_F(HeaderTest, TellsSizesTablesAndEntries) {
  const std::string text = c_header(small_model("tiny"), 0xabcd);
  for (const char* part :
       {"carries no obligation of any licence", "#define tiny_BUILD_ID UINT64_C(0xabcd)",
        "typedef float tiny_real;", "#define tiny_VOCAB 11", "#define tiny_FIXED_T 16",
        "#define tiny_PARAMETERS 99", "X(0, \"tok_emb.weight\", 2, 11, 8, 1, 1, 0, 88, 1, 0)",
        "X(1, \"head.bias\", 1, 11, 1, 1, 1, 96, 11, 0, 0)", "tiny_ENTRY_STEP = TC_ENTRY_STEP",
        "tc_status tiny_train_step(tc_session *session, const tc_batch *batch,"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(text.find("tiny_ENTRY_DECODE"), std::string::npos);  // the model has none
}

TEST_F(HeaderTest, DeclaresNothingThatTrainsWhereItWasLeftOut) {
  ir::Module module = small_model("tiny");
  module.entries.resize(1);  // infer
  const std::string text = c_header(module, 1);
  for (const char* name : {"backward", "accumulate", "vjp", "step", "train_step", "zero_grad", "core_train",
                           "core_vjp", "core_step"}) {
    EXPECT_EQ(text.find(std::string("tiny_") + name + "("), std::string::npos) << name;
  }
  EXPECT_NE(text.find("tiny_forward("), std::string::npos);
}

TEST_F(HeaderTest, DoublePrecision) {
  ir::Module module = small_model("tiny");
  module.real = ir::DType::F64;
  EXPECT_NE(c_header(module, 1).find("typedef double tiny_real;"), std::string::npos);
}

}  // namespace
}  // namespace tfc::codegen
