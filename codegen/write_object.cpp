#include "codegen/write_object.h"

#include <dlfcn.h>

#include <vector>

#include "ir/check.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

LLD_HAS_DRIVER(elf)

namespace tfc::codegen {

std::string write_object(llvm::Module& module, llvm::TargetMachine& machine, bool assembly) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  TFC_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, type), "the target cannot emit a file");
  passes.run(module);
  return bytes.str().str();
}

std::string write_archive(const std::string& object, const std::string& name) {
  llvm::NewArchiveMember member(llvm::MemoryBufferRef(object, name));
  member.MemberName = name;
  std::vector<llvm::NewArchiveMember> members;
  members.push_back(std::move(member));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (!archive) ir::compiler_fault("the archive cannot be written: " + llvm::toString(archive.takeError()));
  return (*archive)->getBuffer().str();
}

namespace {

/// The file that this process loaded a function from.
std::string library_of(const char* function) {
  Dl_info found;
  const void* address = dlsym(RTLD_DEFAULT, function);
  TFC_CHECK(address && dladdr(address, &found) && found.dli_fname, "this process's own C library cannot be found");
  return found.dli_fname;
}

}  // namespace

std::optional<std::string> write_shared(const std::string& object, const std::string& name,
                                        ir::Diagnostics& diagnostics) {
  llvm::SmallString<128> folder;
  if (auto error = llvm::sys::fs::createUniqueDirectory("transformerc", folder)) {
    diagnostics.error({}, "no temporary folder can be made: " + error.message());
    return std::nullopt;
  }
  auto cleanup = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  const std::string input = (folder + "/in.o").str(), output = (folder + "/out.so").str();
  {
    std::error_code error;
    llvm::raw_fd_ostream file(input, error);
    if (!error) file << object;
    file.close();
    if (error || file.has_error()) {
      diagnostics.error({}, "temporary file " + input + " cannot be written: " + (error ? error : file.error()).message());
      file.clear_error();
      return std::nullopt;
    }
  }
  const std::string soname = "lib" + name + ".so";
  const std::string libc = library_of("abort");
  const std::string libm = library_of("tgamma");
  const std::vector<const char*> arguments = {
      "ld.lld", "-shared", "-m", "elf_x86_64", "-soname", soname.c_str(), "--hash-style=gnu", "--build-id=none",
      "--gc-sections", "--as-needed", "-z", "relro", "-z", "now", "-z", "noexecstack", "--no-undefined", "--threads=1",
      "-o", output.c_str(), input.c_str(), libm.c_str(), libc.c_str()};
  std::string text;
  llvm::raw_string_ostream messages(text);
  const lld::Result result = lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
  TFC_CHECK(result.retCode == 0, "lld refuses the generated object: " + text);
  auto bytes = llvm::MemoryBuffer::getFile(output);
  TFC_CHECK(bytes, "lld left no output");
  return (*bytes)->getBuffer().str();
}

}  // namespace tfc::codegen
