# tfc_embed(library symbol file...): the files' bytes, one after the other, linked into the library. In C++:
#   extern "C" const char symbol[];   extern "C" const uint64_t symbol_size;
set(embed_template [[
__asm__(".section .rodata\n.balign 16\n.globl @symbol@\n@symbol@:\n"
        "@incbins@@symbol@_end:\n.byte 0\n.balign 8\n"
        ".globl @symbol@_size\n@symbol@_size:\n.quad @symbol@_end - @symbol@\n.text\n");
]])
function(tfc_embed library symbol)
  set(incbins "")
  foreach(file ${ARGN})
    string(APPEND incbins ".incbin \\\"${file}\\\"\\n")
  endforeach()
  set(source ${CMAKE_BINARY_DIR}/embedded/${symbol}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "${embed_template}" @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${ARGN}")
  add_library(${symbol} STATIC ${source})
  # ccache hashes the source text, which does not change when the embedded bytes do.
  set_target_properties(${symbol} PROPERTIES CXX_COMPILER_LAUNCHER "")
  target_link_libraries(${library} PUBLIC ${symbol})
endfunction()
