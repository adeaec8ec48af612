// The shipped examples: every phase prints, reads back and prints the same, a library compiled from a dump
// equals the direct one, and libraries show and need nothing but what they should.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "codegen/codegen.h"
#include "models/compiled.h"
#include "passes/pass.h"

namespace tfc::models {
namespace {

using ir::Phase;

constexpr Phase kPhases[] = {Phase::Blocks, Phase::Ops, Phase::Joint, Phase::Fused, Phase::Planned};

std::vector<std::string> examples() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(std::string(TFC_SOURCE_DIR) + "/examples")) {
    if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string description_of(const std::string& example) {
  std::ifstream file(std::string(TFC_SOURCE_DIR) + "/examples/" + example + ".toml");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ir::Module example_at(const std::string& example, Phase phase, ir::DType precision = ir::DType::F32) {
  ir::Module module = blocks(description_of(example), {.precision = precision, .name = example});
  ir::Diagnostics diagnostics;
  EXPECT_TRUE(passes::run_pipeline(module, phase, {}, diagnostics)) << diagnostics.text();
  return module;
}

ir::Module read_back(const std::string& text) {
  ir::Diagnostics diagnostics;
  auto module =
      ir::read_module(std::make_shared<ir::SourceFile>(ir::SourceFile{"dump.tcir", text}), diagnostics);
  EXPECT_TRUE(module && ir::verify(*module, diagnostics)) << diagnostics.text();
  return module ? std::move(*module) : ir::Module();
}

codegen::Compiled compile_planned(const ir::Module& planned) {
  ir::Diagnostics diagnostics;
  const auto target = codegen::resolve_target("x86-64-v3", diagnostics);
  codegen::CompileRequest request;
  request.optimisation = 1;
  request.object = request.archive = request.shared = true;
  auto compiled = codegen::compile(planned, *target, request, diagnostics);
  EXPECT_TRUE(compiled) << diagnostics.text();
  return compiled.value_or(codegen::Compiled());
}

TEST(Examples, AreSeveral) { EXPECT_GE(examples().size(), 5u); }

class Example : public testing::TestWithParam<std::string> {};

TEST_P(Example, EveryPhaseReadsBackAndPrintsTheSame) {
  for (const Phase phase : kPhases) {
    const std::string text = ir::print(example_at(GetParam(), phase));
    EXPECT_TRUE(ir::print(read_back(text)) == text) << ir::phase_name(phase);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param; });

/// The same library to the byte, from wherever the compiler goes on.
TEST(CompiledFromDumps, EqualsTheDirectWay) {
  for (const char* example : {"reverse", "parallel", "nano"}) {
    const codegen::Compiled direct = compile_planned(example_at(example, Phase::Planned));
    EXPECT_GT(direct.shared.size(), 10000u);
    for (const Phase phase : {Phase::Blocks, Phase::Joint, Phase::Planned}) {
      SCOPED_TRACE(std::string(example) + " from " + std::string(ir::phase_name(phase)));
      ir::Module module = read_back(ir::print(example_at(example, phase)));
      ir::Diagnostics diagnostics;
      ASSERT_TRUE(passes::run_pipeline(module, Phase::Planned, {}, diagnostics)) << diagnostics.text();
      const codegen::Compiled again = compile_planned(module);
      EXPECT_EQ(again.build_id, direct.build_id);
      EXPECT_TRUE(again.shared == direct.shared);
      EXPECT_TRUE(again.archive == direct.archive);
      EXPECT_TRUE(again.object == direct.object);
    }
  }
}

struct Symbols {
  std::set<std::string> shown, needed;
};

/// A shared library's dynamic symbols.
Symbols dynamic_symbols(const std::string& library) {
  const auto at = [&](uint64_t offset) { return library.data() + offset; };
  Elf64_Ehdr header;
  std::memcpy(&header, at(0), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), at(header.e_shoff), header.e_shnum * sizeof(Elf64_Shdr));
  Symbols symbols;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM) continue;
    const char* names = at(sections[section.sh_link].sh_offset);
    for (uint64_t offset = sizeof(Elf64_Sym); offset < section.sh_size; offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, at(section.sh_offset + offset), sizeof symbol);
      (symbol.st_shndx == SHN_UNDEF ? symbols.needed : symbols.shown).insert(names + symbol.st_name);
    }
  }
  return symbols;
}

/// Everything that a library may ask of libc, libm and threads. Longer is a decision, not an accident.
const std::set<std::string> kMayNeed = {
    "__errno_location", "__sched_cpucount", "access", "bcmp", "clock_gettime", "close", "dirname", "fchmod",
    "free", "fstat", "fsync", "getpid", "lstat", "madvise", "memchr", "memcmp", "memcpy", "memmem",
    "memmove", "memset", "mmap", "munmap", "open", "posix_memalign", "pread", "pthread_create",
    "pthread_join", "pthread_sigmask", "realpath", "rename", "sched_getaffinity", "sched_yield",
    "sigfillset", "snprintf", "stat", "strcmp", "strcpy", "strcspn", "strerror", "strlen", "strnlen",
    "strspn", "strtoull", "syscall", "sysconf", "unlink", "vsnprintf", "write"};

TEST(Libraries, ShowTheirOwnNamesAndNeedTheCLibraryAlone) {
  for (const ir::DType precision : {ir::DType::F32, ir::DType::F64}) {
    const Symbols symbols =
        dynamic_symbols(compile_planned(example_at("reverse", Phase::Planned, precision)).shared);
    EXPECT_GE(symbols.shown.size(), 40u);
    EXPECT_TRUE(symbols.shown.count("reverse_api"));
    EXPECT_TRUE(symbols.shown.count("reverse_core_train"));
    for (const std::string& name : symbols.shown) EXPECT_TRUE(name.starts_with("reverse_")) << name;
    for (const std::string& name : symbols.needed) EXPECT_TRUE(kMayNeed.count(name)) << name;
  }
}

}  // namespace
}  // namespace tfc::models
