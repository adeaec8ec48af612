// The text form: what is printed reads back and prints to the same bytes; what cannot be read is said with
// its place.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "ir/module.h"

namespace tfc::ir {
namespace {

std::shared_ptr<const SourceFile> file(std::string text) {
  return std::make_shared<SourceFile>(SourceFile{"m.tcir", std::move(text)});
}

std::string sample(const std::string& name) {
  std::ifstream in(std::string(TFC_SOURCE_DIR) + "/tests/ir/samples/" + name);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr const char* kSamples[] = {"blocks.tcir", "ops.tcir", "joint.tcir", "fused.tcir", "planned.tcir"};

TEST(Text, EveryPhaseReadsBackToTheSameBytes) {
  for (const char* name : kSamples) {
    const std::string text = sample(name);
    Diagnostics diagnostics;
    const std::optional<Module> module = read_module(file(text), diagnostics);
    ASSERT_TRUE(module.has_value()) << name << "\n" << diagnostics.text();
    EXPECT_EQ(print(*module), text) << name;
    for (const Entry& entry : module->entries)
      EXPECT_NE(text.find(print(entry, *module)), std::string::npos) << name << ", entry " << entry.name;
  }
}

TEST(Text, OddNamesAndNumbersSurvive) {
  Module module;
  module.name = "m";
  module.phase = Phase::Ops;
  module.description = "a = \"\\\"\"\n\n\tb\x01 = 1";
  module.facts = {{"tiny", 5e-324},
                  {"third", 1.0 / 3},
                  {"whole", 2.0},
                  {"low", -std::numeric_limits<double>::infinity()},
                  {"text", std::string("two\nlines")},
                  {"least", std::numeric_limits<int64_t>::min()},
                  {"odd key!", true}};
  Entry entry;
  entry.name = "model";
  Node node;
  node.op = OpKind::Input;
  node.name = "a name, with \"marks\"";
  node.attributes.set("name", std::string("x"));
  node.results = {{DType::F32, {Symbol::B, Dim(2) * Symbol::T + Dim(1)}}};
  node.place = {file(""), 3, 9, 2};
  const NodeId x = entry.graph.add_node(std::move(node), {});
  entry.graph.outputs = {{"output", {x, 0}}};
  module.entries.push_back(std::move(entry));
  const std::string text = print(module);
  Diagnostics diagnostics;
  const std::optional<Module> back = read_module(file(text), diagnostics);
  ASSERT_TRUE(back.has_value()) << diagnostics.text() << text;
  EXPECT_EQ(print(*back), text);
  EXPECT_EQ(back->description, module.description);
  EXPECT_EQ(back->facts, module.facts);
  EXPECT_EQ(back->entries[0].graph.node({0}).place.text(), "m.tcir:3:9");
}

TEST(Text, OrderOfLinesIsFree) {
  const std::string text =
      "transformerc ir 1 module m phase ops real f32\nentry model {\n  %b = add(%a, %a) : f32[3]  // later\n"
      "  %a = input() {name = \"a\"} : f32[3]\n  output o = %b\n}\n";
  Diagnostics diagnostics;
  const std::optional<Module> module = read_module(file(text), diagnostics);
  ASSERT_TRUE(module.has_value()) << diagnostics.text();
  Module compacted = *module;
  compacted.entries[0].graph.compact();
  EXPECT_LT(print(compacted).find("%a = "), print(compacted).find("%b = "));
}

/// Reads a module whose entry holds `lines`; gives the first line of the first message.
std::string message(const std::string& lines,
                    const std::string& header = "transformerc ir 1\nmodule m phase ops real f32\n") {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_module(file(header + "entry model {\n" + lines + "\n}\n"), diagnostics).has_value())
      << lines;
  const std::string text = diagnostics.text();
  return text.substr(0, text.find('\n'));
}

TEST(Text, ReaderErrors) {
  EXPECT_EQ(message("%x = inpt() : f32[3]"), "m.tcir:4:6: error: there is no operation 'inpt'");
  EXPECT_EQ(message("%x = zeros() : f16[3]"),
            "m.tcir:4:16: error: found 'f16', expected an element type: f32, f64, i32 or u8");
  EXPECT_EQ(message("%x = zeros() : f32[B*]"),
            "m.tcir:4:20: error: found 'B*', expected a dimension such as 3072*B*T");
  EXPECT_EQ(message("%x = zeros() : f32[3]\n%x = zeros() : f32[3]"),
            "m.tcir:5:2: error: %x is defined twice");
  EXPECT_EQ(message("%x = scale(%y) {factor = 1.0} : f32[3]"),
            "m.tcir:4:12: error: there is no %y in this graph");
  EXPECT_EQ(message("%x = zeros() : f32[3]\n%y = scale(%x#1) {factor = 1.0} : f32[3]"),
            "m.tcir:5:12: error: %x has 1 results, found number 1");
  EXPECT_EQ(message("%x = zeros() {a = 1, a = 2} : f32[3]"),
            "m.tcir:4:22: error: attribute 'a' is given twice");
  EXPECT_EQ(message("%x = zeros() {a = 1x} : f32[3]"),
            "m.tcir:4:19: error: found '1x', expected a real number");
  EXPECT_EQ(message("%x = zeros() {a = \"b} : f32[3]"),
            "m.tcir:4:19: error: a string does not end on its line, expected '\"'");
  EXPECT_EQ(
      message("%x = zeros() {a = \"\\q\"} : f32[3]"),
      "m.tcir:4:21: error: unknown escape in a string, expected \\\", \\\\, \\n, \\t or \\x and two digits");
  EXPECT_EQ(message("%x = zeros() : f32[3] loc(1:2)"), "m.tcir:4:23: error: there is no file 0 above");
  EXPECT_EQ(message("%x = zeros() : f32[3] loc(12)"),
            "m.tcir:4:29: error: expected a place such as loc(3:9+4)");
  EXPECT_EQ(message("%x = zeros() donates 99999999999 : f32[3]"),
            "m.tcir:4:22: error: 99999999999 is out of range");
  EXPECT_EQ(message("x = zeros() : f32[3]"), "m.tcir:4:1: error: found 'x', expected '}'");
  EXPECT_EQ(message("", "transformerc ir 2\nmodule m phase ops real f32\n"),
            "m.tcir:1:17: error: this is version 2 of the text form, expected 1: print the dump again with "
            "this compiler");
  EXPECT_EQ(message("", "transformerc ir 1\nmodule m phase opps real f32\n"),
            "m.tcir:2:16: error: found 'opps', expected a phase: blocks, ops, joint, fused or planned");
  EXPECT_EQ(message("", "transformerc ir 1\nmodule m phase ops real i32\n"),
            "m.tcir:2:25: error: found 'i32', expected f32 or f64");
  EXPECT_EQ(message("", "[model]\n"), "m.tcir:1:1: error: found '[', expected 'transformerc'");
}

TEST(Text, VerifierErrorsPointIntoTheDump) {
  EXPECT_EQ(message("%x = input() {name = \"x\"} : f32[3]\n  %y = add(%x, %x) : f32[4]"),
            "m.tcir:5:4: error: in entry model: %y (add): its result is f32[4], the operands give f32[3]");
}

// Damaged dumps must give a message or a module, never anything else.
TEST(Text, DamagedDumpsNeverCrash) {
  std::mt19937 random(17);
  const std::string letters = "%(){}[],:=\"#_+-*/ \n0Bxf3\\\xff";
  for (const char* name : kSamples) {
    const std::string text = sample(name);
    for (int round = 0; round < 400; ++round) {
      std::string damaged = text;
      for (int i = 0; i < 1 + round % 3; ++i) {
        const size_t at = random() % damaged.size();
        switch (random() % 4) {
          case 0:
            damaged.erase(at, 1 + random() % 20);
            break;
          case 1:
            damaged.insert(at, 1, letters[random() % letters.size()]);
            break;
          case 2:
            damaged[at] = letters[random() % letters.size()];
            break;
          default:
            damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
            break;
        }
        if (damaged.empty()) damaged = " ";
      }
      Diagnostics diagnostics;
      const std::optional<Module> module = read_module(file(damaged), diagnostics);
      EXPECT_NE(module.has_value(), !diagnostics.ok());
      if (!module) continue;
      const std::string printed = print(*module);
      Diagnostics again;
      const std::optional<Module> back = read_module(file(printed), again);
      ASSERT_TRUE(back.has_value()) << again.text();
      EXPECT_EQ(print(*back), printed);
    }
  }
}

TEST(Text, DeepNestingIsRefused) {
  std::string lines, ends;
  for (int i = 0; i < 5000; ++i) {
    lines += "%f = fused() {kernel = \"k\"} : () {\n";
    ends += "}";
  }
  EXPECT_NE(message(lines + ends).find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace tfc::ir
