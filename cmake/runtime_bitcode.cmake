# The run time is compiled twice: by clang-19 to bitcode, which the compiler links into every generated module, and by
# the ordinary compiler as the library tfc_runtime, so that sanitizers and debuggers see it.
find_program(CLANG_19 NAMES clang++-19 clang-19 REQUIRED)
find_program(LLVM_LINK_19 NAMES llvm-link-19 HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
file(GLOB runtime_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.cpp)
file(GLOB runtime_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.h)
if(NOT runtime_sources)
  return()
endif()

set(runtime_bitcode ${CMAKE_BINARY_DIR}/runtime/runtime.bc)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/runtime)
set(parts "")
foreach(source ${runtime_sources})
  get_filename_component(stem ${source} NAME_WE)
  set(part ${CMAKE_BINARY_DIR}/runtime/${stem}.bc)
  add_custom_command(
    OUTPUT ${part}
    COMMAND ${CLANG_19} -x c++ -std=c++20 -O2 -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics -ffp-contract=off
            -fno-math-errno -fvisibility=hidden -fno-vectorize -fno-slp-vectorize -fno-ident -Wall -Wextra
            -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -I${CMAKE_SOURCE_DIR} -emit-llvm -c ${source} -o ${part}
    DEPENDS ${source} ${runtime_headers}
    VERBATIM)
  list(APPEND parts ${part})
endforeach()
add_custom_command(OUTPUT ${runtime_bitcode} COMMAND ${LLVM_LINK_19} ${parts} -o ${runtime_bitcode} DEPENDS ${parts}
                   VERBATIM)

# The bitcode's bytes as a symbol: extern "C" const char tfc_runtime_bitcode[]; const uint64_t tfc_runtime_bitcode_size.
set(bitcode_source ${CMAKE_BINARY_DIR}/runtime/runtime_bitcode.cpp)
file(CONFIGURE OUTPUT ${bitcode_source} CONTENT [[
__asm__(".section .rodata\n.balign 16\n.globl tfc_runtime_bitcode\ntfc_runtime_bitcode:\n"
        ".incbin \"@runtime_bitcode@\"\ntfc_runtime_bitcode_end:\n.byte 0\n.balign 8\n"
        ".globl tfc_runtime_bitcode_size\ntfc_runtime_bitcode_size:\n"
        ".quad tfc_runtime_bitcode_end - tfc_runtime_bitcode\n.text\n");
]] @ONLY)
set_source_files_properties(${bitcode_source} PROPERTIES OBJECT_DEPENDS ${runtime_bitcode})
add_library(tfc_runtime_bitcode STATIC ${bitcode_source})
# ccache hashes the source text, which does not change when the included bytes do.
set_target_properties(tfc_runtime_bitcode PROPERTIES CXX_COMPILER_LAUNCHER "")
get_target_property(codegen_type tfc_codegen TYPE)
if(codegen_type STREQUAL "STATIC_LIBRARY")
  target_link_libraries(tfc_codegen PUBLIC tfc_runtime_bitcode)
endif()

add_library(tfc_runtime STATIC ${runtime_sources})
target_include_directories(tfc_runtime PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_options(tfc_runtime PRIVATE -fno-exceptions -fno-rtti -ffp-contract=off)
target_link_libraries(tfc_runtime PUBLIC Threads::Threads m)
